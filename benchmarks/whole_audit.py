"""Time a whole audit beside the sum of its recoveries, each called alone.

    recollect demo
    python benchmarks/whole_audit.py --cases demo --checkpoint demo/training/loss-1e-08.safetensors
    python benchmarks/whole_audit.py --gpu --cases fc10 --data DATA --out results/whole-audit-gpu.json

The audit has the default masks and methods, training and unseen images, and writes its report. Each of its recoveries
is then called alone, as a user would in Python. One more audit is profiled. Other masks and methods are for trying it
out.
"""

from __future__ import annotations

import argparse
import cProfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from profiles import slowest
from recovery_cases import CASES, load_case
from reporting import check_writable, input_errors_end_it, table
from timing import CLOCKS, timed, use_clock
from torch import nn

import recollect
from recollect import Blind, Images
from recollect.accelerate.dispatch import backend_for
from recollect.auditing import Audit, AuditRequest
from recollect.auditing.measure import Measured, Trial, recover
from recollect.auditing.run import run_audit
from recollect.degradation import observe
from recollect.devices.precision import check_device
from recollect.engine import Runtime
from recollect.engine import runtime as engine_runtime
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.recovery import Progress
from recollect.sources import control_of, load

PACKAGE = Path(recollect.__file__).parent


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["demo"], choices=list(CASES), help="names in recovery_cases.py")
    parser.add_argument("--gpu", action="store_true", help="run on a CUDA device")
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--checkpoint", type=Path, help="the network of a single case: read if there, else written")
    parser.add_argument("--masks", default="all", help="as for recollect audit")
    parser.add_argument("--methods", help="as for recollect audit")
    parser.add_argument("--turns", type=int, default=1, help="runs of both; the shortest of each counts")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu with --threads 1 on a busy machine")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    options = parser.parse_args(arguments)
    options.device = "cuda" if options.gpu else "cpu"
    return options


def run(options: argparse.Namespace) -> None:
    check_device(options.device)
    check_writable(options.out, options.checkpoint)
    if options.threads:
        torch.set_num_threads(options.threads)
    use_clock(options.clock)
    cases: dict[str, Any] = {}
    for name in options.cases:
        for case in time_case(name, options):
            cases[name] = case
            if options.out:
                write_json(options.out, {"clock": options.clock, **origin(options.device), "cases": cases})
    print(tables(cases))


def time_case(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time audits and, after each, its recoveries alone; then the same with a profile of one more audit."""
    images, network = load_case(name, options)
    network = network.to(options.device)
    Blind(limit=1)(network, images.pixels.to(options.device))  # the first recovery compiles kernels
    settings = {"masks": options.masks, "methods": options.methods}
    audit_once = partial(audit, network, images, unseen_images(name, images, options), settings)
    audits, alone = [], []
    for _ in range(options.turns):
        with counting(options.device) as prepared:
            (result, trials), seconds = timed(audit_once, options.device)
        audits.append(seconds)
        alone.append(timed(partial(recover_alone, network, trials), options.device)[1])
    case = {
        "images": {trial.cell["set"]: len(trial.images) for trial in trials}, "cells": len(trials),
        "audit_seconds": min(audits), "cells_seconds": sum(record.seconds for record in result.records),
        "recoveries_seconds": min(alone), "ratio": min(audits) / min(alone), "counts": prepared,
        "profile": [],
    }  # fmt: skip
    yield case
    yield {**case, "profile": profile_of(audit_once, options.clock)}


def profile_of(audit_once: Callable[[], Any], clock: str) -> list[dict[str, Any]]:
    """List where one more audit spends its time: Recollect's functions by cumulative seconds."""
    with cProfile.Profile(CLOCKS[clock]) as profile:
        audit_once()
    return slowest(profile, [PACKAGE])


def audit(f: nn.Module, train: Images, control: Images, settings: dict[str, Any]) -> tuple[Audit, list[Trial]]:
    """Audit as the command line does, with a report; list the cells that were measured."""
    trials: list[Trial] = []

    def measure(trial: Trial, progress: Progress) -> Measured:
        trials.append(trial)
        return trial.measured(f, progress)

    with tempfile.TemporaryDirectory() as folder:
        request = AuditRequest(f, train, control, out=folder, **settings)
        return run_audit(request, measurer=measure, announce=lambda _: None), trials


def recover_alone(f: nn.Module, trials: Sequence[Trial]) -> None:
    for trial in trials:
        seen = observe(trial.images, trial.truth, noise_std=trial.conditions.noise_std, seed=trial.conditions.seed)
        recover(trial.method, f, seen)


def unseen_images(name: str, images: Images, options: argparse.Namespace) -> Images:
    """Load the control images of a case's source; random ones where its images are random."""
    source = CASES[name].source
    control = control_of(source.format(data=options.data)) if source else None
    if control and (options.data or "{data}" not in source):
        return load(control)
    return Images(torch.rand(images.pixels.shape, generator=torch.Generator().manual_seed(1)), name="unseen")


@contextmanager
def counting(device: str) -> Iterator[dict[str, int]]:
    """Count the networks that are prepared, their probes, and the weights that are packed."""
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        for what, owner, name in (
            ("prepared networks", Runtime, "__init__"),
            ("probes", engine_runtime, "probe_network"),
            ("packed weights", type(backend_for(torch.device(device))), "pack"),
        ):
            counts[what] = 0
            stack.enter_context(patch.object(owner, name, counted(counts, what, getattr(owner, name))))
        yield counts


def counted(counts: dict[str, int], what: str, function: Any) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        counts[what] += 1
        return function(*arguments, **options)

    return call


def tables(cases: dict[str, Any]) -> str:
    counts = list(next(iter(cases.values()))["counts"])
    head = ["case", "cells", "audit, s", "its recoveries alone, s", "ratio", *counts]
    rows = [
        [
            name, str(case["cells"]), f"{case['audit_seconds']:.1f}", f"{case['recoveries_seconds']:.1f}",
            f"{case['ratio']:.2f}", *(str(case["counts"][what]) for what in counts),
        ]
        for name, case in cases.items()
    ]  # fmt: skip
    profiles = [
        table(["seconds", "calls", f"function, in an audit of {name}"],
              [[f"{row['seconds']:.2f}", str(row["calls"]), row["function"]] for row in case["profile"]])
        for name, case in cases.items()
    ]  # fmt: skip
    return "\n\n".join([table(head, rows), *profiles])


if __name__ == "__main__":
    main()
