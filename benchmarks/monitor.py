"""What does watching a training cost, and does the watch see memorization begin where full audits do?

    python benchmarks/monitor.py --out monitor.json
    python benchmarks/monitor.py --tables monitor.json

A fully connected network is trained on photographs with `MemorizationMonitor` after every epoch. The overhead is the
time inside the monitor as a share of the rest of the training. Networks are kept at every checkpoint; a full audit of
each, of all images by the paper's attack, gives the onset to compare with.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from reporting import check_writable, input_errors_end_it, read_result, table
from torch import nn
from torch.nn.functional import mse_loss

from recollect import FullyConnected, Images, audit, load
from recollect.callbacks import MemorizationMonitor
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.scoring import APPROXIMATE

BATCH = 8


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "checkpoints", "overhead")))
        return
    check_writable(options.out)
    results = {**origin("cpu"), **watched(options)}
    if options.out:
        write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="training images, and as many unseen ones")
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--rate", type=float, default=4e-5, help="learning rate: a lower one delays memorization")
    parser.add_argument("--every", type=int, default=150, help="epochs between checkpoints")
    parser.add_argument("--checkpoints", type=int, default=5)
    parser.add_argument("--sample", type=int, default=32, help="images of each set that the monitor attacks")
    parser.add_argument("--masks", default="block,scatter", help="of the full audits")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the table of such a file and run nothing")
    return parser.parse_args(arguments)


def watched(options: argparse.Namespace) -> dict[str, Any]:
    source = f"photos?count={options.count}&size={options.size}"
    images, control = load(source), load(f"{source}&part=control")
    monitor = MemorizationMonitor(images, control, every=options.every, images=options.sample, tell=lambda _: None)
    network = FullyConnected(images.shape, layers=options.layers, width=options.width, seed=0)
    kept, seconds = train(network, images, monitor, options.every * options.checkpoints, options.rate)
    onset = monitor.onset
    rows: list[dict[str, Any]] = [
        {"epoch": epoch, "monitor": vars(seen.train), "begun": seen.begun, "audit": shown}
        for (epoch, one), seen in zip(kept.items(), monitor.history, strict=True)
        for shown in [full_audit(one, images, control, monitor, options.masks)]
    ]
    full = next((row["epoch"] for row in rows if row["audit"]["begun"]), None)
    return {
        "images": source, "layers": options.layers, "width": options.width, "rate": options.rate,
        "every": options.every, "sample": options.sample, "threads": torch.get_num_threads(),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "overhead": seconds["monitor"] / seconds["training"], "onset": onset, "onset_of_full_audits": full,
        "checkpoints": rows,
    }  # fmt: skip


def train(
    network: nn.Module, images: Images, monitor: MemorizationMonitor, epochs: int, rate: float
) -> tuple[dict[int, nn.Module], dict[str, float]]:
    """Train with a monitor; return the network at each checkpoint, and the seconds of both."""
    optimizer, pixels = torch.optim.Adam(network.parameters(), lr=rate), images.pixels
    kept, seconds = {}, {"training": 0.0, "monitor": 0.0}
    order = torch.Generator().manual_seed(0)
    for epoch in range(1, epochs + 1):
        began = time.perf_counter()
        network.train()
        for batch in pixels[torch.randperm(len(pixels), generator=order)].split(BATCH):
            optimizer.zero_grad()
            mse_loss(network(batch), batch).backward()
            optimizer.step()
        trained = time.perf_counter()
        audited = monitor(network, epoch)
        seconds["training"] += trained - began
        seconds["monitor"] += time.perf_counter() - trained
        if audited:
            kept[epoch] = deepcopy(network)
    return kept, seconds


def full_audit(
    network: nn.Module, images: Images, control: Images, monitor: MemorizationMonitor, masks: str
) -> dict[str, Any]:
    """Attack all images with the paper's method, and judge the rates as the monitor does."""
    full = audit(network, train=images, control=control, masks=masks, methods="blind", pictures=False)
    train_rate, control_rate = (full.any_attack(name).rate(APPROXIMATE) for name in ("train", "control"))
    begun = monitor.shows_memorization(train_rate, control_rate)
    return {"train": vars(train_rate), "control": vars(control_rate), "begun": begun}


def tables(results: dict[str, Any]) -> str:
    rows = [
        [
            str(row["epoch"]),
            *(f"{rate['count']} of {rate['total']}" for rate in (row["monitor"], row["audit"]["train"])),
        ]
        for row in results["checkpoints"]
    ]
    head = f"{results['device']}; torch {results['versions']['torch']}; {results['date']}; {results['images']}"
    words = (
        f"The monitor took {results['overhead']:.1%} of the time of the training. Onset: after {results['onset']} "
        f"epochs by the monitor, {results['onset_of_full_audits']} by full audits; checkpoints are {results['every']} "
        "epochs apart."
    )
    return f"{head}\n\n{words}\n\n{table(['epoch', 'monitor', 'full audit'], rows)}"


if __name__ == "__main__":
    main()
