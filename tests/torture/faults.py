"""Take disk, memory or output away while a command runs: it says so in a sentence, and resumes to the same records."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.torture.children import MEGABYTE, Ended, Limits
from tests.torture.commands import PATIENCE, RESULTS, Command
from tests.torture.kills import finish
from tests.torture.outcome import Outcome, complaint
from tests.torture.trial import Trial

STARVED = (0, 1, 2)  # exit codes: it had enough, or it says what it lacks
READ_ONLY = Path("/proc/sys")  # a file system on which even root creates nothing


def run(trial: Trial) -> list[Outcome]:
    """Run a command under one fault, and then without."""
    rng = trial.random()
    command, (name, fault) = trial.draw_command(rng), rng.choice(sorted(FAULTS.items()))
    ended, allowed = fault(command, trial, rng)
    problem = complaint(ended, allowed)
    again = finish(command, trial, "faults")
    if problem is None and again.problem:
        problem = f"resumed: {again.problem}"
    return [Outcome("faults", f"{name}: {command.name}", problem, refused=ended.code != 0, evidence=trial.folder)]


Fault = Callable[[Command, Trial, random.Random], tuple[Ended, tuple[int, ...]]]


def _little_memory(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    limits = Limits(memory=int(MEGABYTE * 2 ** rng.uniform(2, 9)))
    return command.start(trial.inputs, trial.folder, limits).wait(PATIENCE), STARVED


def _short_files(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    most = int(2 ** rng.uniform(6, 20))
    ended = command.start(trial.inputs, trial.folder, Limits(file_bytes=most)).wait(PATIENCE)
    if len(ended.err.encode()) >= most:  # its sentence goes to a file too, and may not have fitted
        ended = replace(ended, err=f"{ended.err}\nrecollect: (cut off at the limit)")
    return ended, STARVED


def _full_disk(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    """Fill a small file system; what was written there is the start of the run without the fault."""
    with _small_disk(trial.folder / RESULTS, int(2 ** rng.uniform(13, 21))) as mounted:
        if not mounted:
            return _short_files(command, trial, rng)
        ended = command.start(trial.inputs, trial.folder).wait(PATIENCE)
        subprocess.run(["cp", "-a", f"{trial.folder}/{RESULTS}/.", trial.folder / "kept"], check=True)
    (trial.folder / RESULTS).rmdir()
    (trial.folder / "kept").rename(trial.folder / RESULTS)
    return ended, STARVED


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[bool]:
    """Mount a file system of `size` bytes in memory; False where this may not be done."""
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={size},nr_inodes=200", "recollect-torture"]
    mounted = os.geteuid() == 0 and subprocess.run(["mount", *options, folder], capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)


def _read_only_disk(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    results = trial.folder / RESULTS
    results.symlink_to(READ_ONLY)
    ended = command.start(trial.inputs, trial.folder).wait(PATIENCE)
    results.unlink()
    return ended, (2,)


def _file_in_the_way(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    (trial.folder / RESULTS).write_text("not a folder")
    ended = command.start(trial.inputs, trial.folder).wait(PATIENCE)
    (trial.folder / RESULTS).unlink()
    return ended, (2,)


def _full_output(command: Command, trial: Trial, rng: random.Random) -> tuple[Ended, tuple[int, ...]]:
    """Print to a device that is always full; an interpreter then leaves with 120."""
    return command.start(trial.inputs, trial.folder, stdout=Path("/dev/full")).wait(PATIENCE), (0, 1, 2, 120)


FAULTS: dict[str, Fault] = {
    "little memory": _little_memory, "short files": _short_files, "full disk": _full_disk,
    "read-only disk": _read_only_disk, "file in the way": _file_in_the_way, "full output": _full_output,
}  # fmt: skip
