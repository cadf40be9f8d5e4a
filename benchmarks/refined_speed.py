"""Time `Refined` beside `Blind`: wall time of an image-step, on one network and the same damaged images.

    python benchmarks/refined_speed.py --gpu --data DATA --out results/refined-speed.json
    python benchmarks/refined_speed.py --cases quick

DATA is as for recovery.py; without it the images are random. Both methods run once to compile and capture; the shortest
of some runs counts. "Plain" is the same in PyTorch's kernels and the loop of Algorithm 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from recovery_cases import CASES, Case, load_case
from reporting import check_writable, input_errors_end_it, table
from timing import best_of

from recollect import Blind, Images, Recovery, Refined, Score, mask, observe
from recollect.devices.precision import check_device
from recollect.engine import without_acceleration
from recollect.methods.base import Method
from recollect.paper.origin import origin
from recollect.records import write_json

METHODS: dict[str, type[Blind | Refined]] = {"blind": Blind, "refined": Refined}


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=["fc10", "unet50"])
    parser.add_argument("--gpu", action="store_true", help="run on a CUDA device")
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--checkpoint", type=Path, help="the network of a single case: read if there, else written")
    parser.add_argument("--mask", default="dust")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    options = parser.parse_args(arguments)
    options.device = "cuda" if options.gpu else "cpu"
    return options


def run(options: argparse.Namespace) -> None:
    check_device(options.device)
    check_writable(options.out, options.checkpoint)
    results: dict[str, Any] = {**origin(options.device), "cases": {}}
    for name in options.cases:
        results["cases"][name] = compare(CASES[name], *load_case(name, options), options)
        if options.out:
            write_json(options.out, results)
    print(tables(results))


def compare(case: Case, images: Images, network: torch.nn.Module, options: argparse.Namespace) -> dict[str, Any]:
    y = observe(images, mask(options.mask, images.shape)).y.to(options.device)
    rows = {}
    for name, kind in METHODS.items():
        method = kind(gamma=case.gamma, start=case.start, limit=case.limit)
        rows[name] = measure(method, network, y, images, options)
        with without_acceleration():
            rows[f"{name}, plain"] = measure(method, network, y, images, options)
    return rows


def measure(
    method: Method, network: torch.nn.Module, y: torch.Tensor, images: Images, options: argparse.Namespace
) -> dict[str, Any]:
    method(network, y)
    timed = best_of(options.repeats, lambda: method(network, y), options.device)
    recovery: Recovery = timed.value
    score = Score.of(recovery.estimate.cpu(), images.pixels)
    return {
        "seconds": timed.seconds, "image_steps": int(recovery.steps.sum()), "peak_bytes": timed.peak,
        "accurate": score.accurate.count, "approximate": score.approximate.count,
    }  # fmt: skip


def tables(results: dict[str, Any]) -> str:
    head = ["case", "method", "seconds", "image-steps", "us an image-step", "of blind's", "accurate", "approximate"]
    rows = []
    for case, methods in results["cases"].items():
        blind = microseconds(methods["blind"])
        for name, row in methods.items():
            each = microseconds(row)
            rows.append([
                case, name, f"{row['seconds']:.2f}", f"{row['image_steps']:,}", f"{each:.2f}", f"{each / blind:.2f}",
                str(row["accurate"]), str(row["approximate"]),
            ])  # fmt: skip
    return f"{results['device']}; torch {results['versions']['torch']}; {results['date']}\n\n{table(head, rows)}"


def microseconds(row: dict[str, Any]) -> float:
    return 1e6 * float(row["seconds"]) / max(1, int(row["image_steps"]))


if __name__ == "__main__":
    main()
