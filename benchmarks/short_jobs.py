"""Measure the paper's suite in short jobs on another machine, and collect the records.

    python benchmarks/pack_images.py --data DATA --out runs/images --sets tiny600,svhn50,cifar1000
    PYTHONPATH=. python benchmarks/short_jobs.py --data runs/images --commit COMMIT --out OUT    # there, once a job
    python benchmarks/merge_results.py OUT results/paper/full --work runs/paper/full             # here, after each

For a queue whose jobs end after minutes, and whose machines may keep nothing. The first and the last command run where
the repository is. The second needs a copy of the repository's files, torch, numpy and safetensors. `results/paper` says
what is measured already. New records and weights are written to --work. If that folder is kept, the next job resumes
there. OUT holds archives of all that is new. They are renewed after each training and each minute, so a job that is
killed loses little.

A network is trained and all its cells are measured before the next one begins. After the first one, a network is begun
only if it should be done with in the time left. A network that fails does not end the run.
"""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from merge_results import PICTURES, merge, pack
from reporting import input_errors_end_it

from recollect.distributed.jobs import Budget, Job, Log, in_this_process
from recollect.errors import InputError
from recollect.files.locks import LOCK
from recollect.paper import RESULTS
from recollect.paper.cells import Cell, Fit
from recollect.paper.experiments import EXPERIMENTS, experiments_named
from recollect.paper.fit import is_trained
from recollect.paper.measure import MeasureCells
from recollect.paper.order import weights_needed
from recollect.paper.origin import COMMIT, note_commit
from recollect.paper.overview import overview
from recollect.paper.run import run
from recollect.paper.scales import Scale, scale_named
from recollect.paper.time_left import SecondsOfCells
from recollect.paper.workspace import Workspace, open_workspace

EVERY = 60.0  # seconds between two archives
LARGEST = 10_000_000  # bytes of an archive
UNFINISHED = 1  # exit code


@dataclass
class InTime:
    """Runs jobs one after the other, and begins a training only if it should end in time; the first one always."""

    estimates: SecondsOfCells
    after_each: Callable[[], object]
    _has_begun: bool = field(default=False, init=False)
    _put_off: set[Fit] = field(default_factory=set, init=False)

    def __call__(self, jobs: Iterable[Job], budget: Budget, log: Log) -> bool:
        done = True
        for job in jobs:
            if self._should_begin(cast(MeasureCells, job), budget, log):
                done = going_on([job], budget, log) and done
                self.after_each()
            else:
                done = False
        return done

    def _should_begin(self, job: MeasureCells, budget: Budget, log: Log) -> bool:
        seconds = seconds_of(job, self.estimates)
        if not seconds or not self._has_begun or seconds <= budget.left:
            self._has_begun = self._has_begun or bool(seconds)
            return True
        if budget.left and job.fit not in self._put_off:
            log(f"{job.fit.name}: not begun, for it takes about {seconds:.0f} s, and {budget.left:.0f} s are left")
        self._put_off.add(job.fit)
        return False


def going_on(jobs: Iterable[Job], budget: Budget, log: Log) -> bool:
    """Run jobs in this process; one that fails does not end the run, for the machine's time is for the others."""
    done = True
    for job in jobs:
        try:
            done = in_this_process([job], budget, log) and done
        except Exception as error:  # of any kind
            name = job.fit.name if isinstance(job, MeasureCells) else type(job).__name__
            log(f"{name}: {error if isinstance(error, InputError) else traceback.format_exc()}")
            done = False
    return done


def seconds_of(job: MeasureCells, estimates: SecondsOfCells) -> float:
    """Estimate a training and all its cells; nothing if it needs no training now."""
    missing = [cell for cell in job.of_training or job.cells if job.workspace.store.is_missing(cell)]
    if is_trained(job.workspace, job.fit, job.needed) or not _wants_weights(job, missing):
        return 0.0
    return job.fit.goal_seconds + sum(estimates.of_cell(cell) or 0.0 for cell in missing)


def _wants_weights(job: MeasureCells, missing: Iterable[Cell]) -> bool:
    return job.has_pictures or not job.cells or any(cell.sees_network for cell in missing)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    with input_errors_end_it():
        if options.commit:
            os.environ[COMMIT] = options.commit
        if note_commit() is None:
            raise InputError("This copy is no repository: name its commit with --commit.")
        scale = scale_named(options.scale, options.data)
        recorded = options.results / scale.name
        results = options.work / "results"
        merge(recorded, results / scale.name, log=lambda _: None)
        workspace = open_workspace(scale, options.data, results, options.work / "paper", options.device)
        if not measure(scale, workspace, recorded, options):
            raise SystemExit(UNFINISHED)


def measure(scale: Scale, workspace: Workspace, recorded: Path, options: argparse.Namespace) -> bool:
    """Run the experiments, and pack what is new; return whether nothing is missing."""
    before = contents(recorded)
    last, has_new = time.monotonic(), False

    def bring_back() -> None:
        nonlocal last, has_new
        if has_new:
            pack_new(workspace, before, options.out)
        last, has_new = time.monotonic(), False

    def log(line: str) -> None:
        nonlocal has_new
        print(line, flush=True)
        has_new = True
        if time.monotonic() - last > EVERY:
            bring_back()

    cells = {cell.key: cell for experiment in EXPERIMENTS.values() for cell in experiment.cells(scale)}
    in_time = InTime(SecondsOfCells.of(cells.values(), workspace.store), bring_back)
    try:
        return run(
            experiments_named(options.names), scale, workspace, only=options.only, budget=Budget(options.max_seconds),
            log=log, runner=in_time, seeds=options.seeds, by_training=True,
            kept=weights_needed(EXPERIMENTS.values(), scale), small_runner=going_on,
        )  # fmt: skip
    finally:
        bring_back()
        lines = list(overview(scale, workspace))
        print("\n".join(lines[lines.index("parts, in the order of a run:") :]), flush=True)


def contents(folder: Path) -> dict[Path, bytes]:
    """Read all files of a folder by their names in it."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pack_new(workspace: Workspace, before: Mapping[Path, bytes], out: Path) -> list[Path]:
    """Archive the records and facts that differ from those before, and the pictures."""
    now = contents(workspace.store.folder)
    new = {name: workspace.store.folder / name for name in now if name.name != LOCK and before.get(name) != now[name]}
    pictures = {Path(PICTURES, path.name): path for path in (workspace.work / PICTURES).glob("*.npz")}
    return pack({**new, **pictures}, out, LARGEST)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="?", default="all", help="names of experiments, separated by commas, or all")
    parser.add_argument("--scale", default="full", choices=["small", "full"])
    parser.add_argument("--data", help="folder of the packed images")
    parser.add_argument("--out", type=Path, required=True, help="folder of the archives")
    parser.add_argument("--commit", help="of the copy, if it is no repository")
    parser.add_argument("--max-seconds", type=float, default=500.0, help="begin nothing after this time")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what is recorded already")
    parser.add_argument("--work", type=Path, default=Path("runs/short_jobs"), help="new records, weights and pictures")
    parser.add_argument("--device")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
