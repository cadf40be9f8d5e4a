"""How do the time and the memory of an audit grow with the number of images?

    python benchmarks/large_sets.py --sizes 10000 100000 --folder /tmp/large-sets --out large-sets.json
    python benchmarks/large_sets.py --tables large-sets.json

Random 8-bit images of 32x32x3 are written to .npy files. A small network is planted that stores 256 of them, evenly
spaced over the set. An audit then attacks every image under one mask. Each size runs in a process of its own, whose
peak of memory (VmHWM) is recorded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reporting import check_writable, input_errors_end_it, read_result, table
from torch import Tensor, nn

from recollect import Images, InputError, audit
from recollect.methods import METHODS
from recollect.paper.origin import COMMIT, origin
from recollect.records import write_json

SHAPE = (3, 32, 32)
AT_ONCE = 8192  # images that are drawn at a time
UNSEEN = 1000


class Planted(nn.Module):
    """A network of two layers with a softmax between them; images that are planted in it are its fixed points."""

    def __init__(self, stored: Tensor, sharpness: float = 2.0) -> None:
        super().__init__()
        flat = stored.flatten(1)
        self.shape = stored.shape[1:]
        self.first, self.second = nn.Linear(flat.shape[1], len(flat)), nn.Linear(len(flat), flat.shape[1], bias=False)
        with torch.no_grad():  # the logits are -sharpness |x - stored|^2, up to a constant
            self.first.weight.copy_(2 * sharpness * flat)
            self.first.bias.copy_(-sharpness * flat.square().sum(1))
            self.second.weight.copy_(flat.T)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x.flatten(1)).softmax(1)).view(-1, *self.shape)


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "rows", "mask")))
    elif options.measure:
        print(json.dumps(measured(options)))
    else:
        run_all(options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], help="numbers of training images")
    parser.add_argument("--folder", type=Path, default=Path("large-sets"), help="where the images are written")
    parser.add_argument("--stored", type=int, default=256, help="images that the network stores")
    parser.add_argument("--methods", default="iterate")
    parser.add_argument("--rounds", type=int, default=10, help="of blind and refined, at most")
    parser.add_argument("--mask", default="block")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the table of such a file and run nothing")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)  # one size, in a process of its own
    return parser.parse_args(arguments)


def run_all(options: argparse.Namespace) -> None:
    check_writable(options.out)
    results: dict[str, Any] = {
        **origin(options.device), "stored": options.stored,
        "methods": options.methods, "rounds": options.rounds, "mask": options.mask,
        "threads": torch.get_num_threads(), "rows": [],
    }  # fmt: skip
    if options.out:
        check_commit(results)
    make_images(options.folder / "unseen.npy", UNSEEN, seed=1)
    for size in options.sizes:
        make_images(path_of(options.folder, size), size, seed=0)
        results["rows"].append(measure_alone(options, size))
        if options.out:
            write_json(options.out, results)
    print(tables(results))


def check_commit(results: Mapping[str, Any]) -> None:
    """Refuse to record numbers of unknown code."""
    if not results["commit"]:
        raise InputError(f"A record names the commit that was measured; without a repository set {COMMIT}=HASH.")


def path_of(folder: Path, size: int) -> Path:
    return folder / f"train-{size}.npy"


def make_images(path: Path, count: int, seed: int) -> None:
    """Write random images, unless they are there already."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    partial = path.with_suffix(".partial")
    values = np.lib.format.open_memmap(partial, "w+", np.uint8, (count, *SHAPE))
    for start in range(0, count, AT_ONCE):
        end = min(start + AT_ONCE, count)
        values[start:end] = random.integers(0, 256, (end - start, *SHAPE), np.uint8)
    values.flush()
    partial.rename(path)


def measure_alone(options: argparse.Namespace, size: int) -> dict[str, Any]:
    """Measure one size in a process of its own: a peak of memory is that of a process."""
    settings = {name: getattr(options, name) for name in ("folder", "stored", "methods", "rounds", "mask", "device")}
    given = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, __file__, "--measure", str(size), *given]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    path = path_of(options.folder, options.measure)
    f = Planted(stored_images(path, options.stored)).to(options.device)
    before, began, used = peak_memory(), time.monotonic(), time.process_time()
    result = audit(
        f, train=path, control=options.folder / "unseen.npy", masks=options.mask,
        methods=methods(options),
    )  # fmt: skip
    seconds, used = time.monotonic() - began, time.process_time() - used
    of_cpu = {"cpu_seconds": round(used, 1)} if options.device == "cpu" else {}
    assert result.finding.control is not None
    return {
        "images": options.measure, "seconds": round(seconds, 1), **of_cpu,
        "peak_bytes": peak_memory(), "bytes_before": before,
        "attack_seconds": sum(record.seconds for record in result.records), "headline": result.headline,
        "recovered": result.finding.train.count, "recovered_unseen": result.finding.control.count,
    }  # fmt: skip


def methods(options: argparse.Namespace) -> dict[str, Any]:
    """Build the methods with their own settings: a search for gamma would leave images out."""
    chosen = {}
    for name in options.methods.split(","):
        method = METHODS[name]
        limit = {"limit": options.rounds} if method.takes("gamma") and method.in_rounds else {}
        chosen[name] = method.for_audit(gamma=0.5, **limit)
    return chosen


def stored_images(path: Path, count: int) -> Tensor:
    values = np.lib.format.open_memmap(path, mode="r")
    positions = np.linspace(0, len(values) - 1, min(count, len(values) // 2)).round().astype(int)
    return Images.from_uint8(torch.from_numpy(values[positions])).pixels


def peak_memory() -> int:
    """Return the largest memory that this process has had in RAM, in bytes."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def milliseconds(row: dict[str, Any]) -> float:
    """Return the time of an image: on a CPU that of the CPU, which other programs do not lengthen."""
    return 1000 * float(row.get("cpu_seconds", row["seconds"])) / int(row["images"])


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "images": lambda row: f"{row['images']:,}",
    "seconds": lambda row: f"{row['seconds']:.0f}",
    "CPU seconds": lambda row: f"{row['cpu_seconds']:.0f}",
    "ms an image": lambda row: f"{milliseconds(row):.2f}",
    "peak GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
    "before the audit": lambda row: f"{row['bytes_before'] / 1e9:.2f}",
    "recovered": lambda row: str(row["recovered"]),
}


def tables(results: dict[str, Any]) -> str:
    head = f"{results['device']}; torch {results['versions']['torch']}; {results['date']}; {results['methods']}"
    has_cpu = all("cpu_seconds" in row for row in results["rows"])
    shown = {name: write for name, write in COLUMNS.items() if has_cpu or name != "CPU seconds"}
    rows = [[write(row) for write in shown.values()] for row in results["rows"]]
    return f"{head}, mask {results['mask']}\n\n{table(list(shown), rows)}"


if __name__ == "__main__":
    main()
