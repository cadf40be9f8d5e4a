"""Time the first recovery of a process: on a fresh machine, with compiled kernels on disk, and in PyTorch's kernels.

    python benchmarks/first_recovery.py --gpu --out results/first-recovery.json
    python benchmarks/first_recovery.py --cases quick          # tries it on a CPU

Each row is a process of its own. "Fresh" has an empty folder for compiled kernels; "later" has the folder that the
fresh one filled; "PyTorch" runs without acceleration. Images and weights are random, with three rounds at most: only
starting is timed. The estimates of a fresh and a later process must be equal to the bit. One more later process is
profiled: the record then says where its first recovery spends its time.
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from sysconfig import get_path
from typing import Any

from profiles import slowest
from reporting import check_writable, input_errors_end_it, table

import recollect

PROCESSES = {"fresh": {}, "later": {}, "PyTorch": {"RECOLLECT_ACCELERATE": "off"}}  # and their environment
PROFILED = "later, profiled"
ROUNDS = 3
PACKAGES = [Path(recollect.__file__).parents[1], *(Path(get_path(name)) for name in ("purelib", "stdlib"))]


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["unet50", "fc10"], help="names in recovery_cases.py")
    parser.add_argument("--gpu", action="store_true", help="run on a CUDA device")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--process", metavar="CASE", help=argparse.SUPPRESS)  # one process of a case
    parser.add_argument("--profile", action="store_true", help=argparse.SUPPRESS)  # of that process
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> None:
    device = "cuda" if options.gpu else "cpu"
    if options.process:
        print(json.dumps(time_process(options.process, device, options.profile)))
        return
    check_writable(options.out)
    cases = {name: time_case(name, options.gpu) for name in options.cases}
    print(tables(cases))
    if options.out:
        from recollect.paper.origin import origin
        from recollect.records import write_json

        write_json(options.out, {**origin(device), "cases": cases})


def time_case(name: str, gpu: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return {process: start_process(name, gpu, folder, process) for process in [*PROCESSES, PROFILED]}


def start_process(name: str, gpu: bool, folder: str, process: str) -> dict[str, Any]:
    """Run one process with this folder for compiled kernels, and read what it prints."""
    command = [sys.executable, __file__, "--process", name, *(["--gpu"] if gpu else [])]
    if process == PROFILED:
        command.append("--profile")
    environment = {**os.environ, "TRITON_CACHE_DIR": folder, **PROCESSES.get(process, {})}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def time_process(name: str, device: str, profiled: bool) -> dict[str, Any]:
    """Time the start of PyTorch, a first and a second recovery in this process."""
    began = time.perf_counter()
    import torch

    torch.zeros(1, device=device).add_(1).cpu()
    seconds = {"pytorch": time.perf_counter() - began}
    from recovery_cases import CASES

    from recollect import Blind

    case = CASES[name]
    torch.manual_seed(0)
    network, images = case.network(case.shape[1:]).to(device).eval(), torch.rand(case.shape).to(device)
    method = Blind(gamma=case.gamma, start=case.start, limit=ROUNDS)
    profile = cProfile.Profile()
    for which in ("first", "second"):
        began = time.perf_counter()
        with profile if profiled and which == "first" else nullcontext():
            estimate = method(network, images).estimate.cpu()
        seconds[which] = time.perf_counter() - began
    timed = {"seconds": seconds, "estimate": hashlib.sha256(estimate.numpy().tobytes()).hexdigest()[:16]}
    return {**timed, "profile": slowest(profile, PACKAGES)} if profiled else timed


def tables(cases: dict[str, Any]) -> str:
    head = ["case", "process", "PyTorch starts, s", "first recovery, s", "second, s", "beyond PyTorch's first, s"]
    rows = []
    for name, processes in cases.items():
        own = processes["PyTorch"]["seconds"]["first"]
        for process in PROCESSES:
            seconds = processes[process]["seconds"]
            numbers = [seconds["pytorch"], seconds["first"], seconds["second"], seconds["first"] - own]
            rows.append([name, process, *(f"{number:.2f}" for number in numbers)])
    equal = all(processes["fresh"]["estimate"] == processes["later"]["estimate"] for processes in cases.values())
    verdict = "equal" if equal else "DIFFERENT"
    return f"{table(head, rows)}\n\nEstimates of fresh and later processes are {verdict}."


if __name__ == "__main__":
    main()
