"""Open files that are damaged or made up: each opens or is refused in a sentence, in bounded time and memory."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.errors import InputError
from tests.torture.built import build
from tests.torture.children import MEGABYTE, Ended, Limits, fork
from tests.torture.formats import FORMATS, Format
from tests.torture.mutations import mutate
from tests.torture.outcome import Outcome
from tests.torture.trial import Trial

BATCH = 24  # files a trial
BUILT = 6  # of which hypothesis builds so many
HOSTILE = 4  # and so many are hostile, or mutated from hostile ones
CPU_SECONDS = 5
MEMORY = 500 * MEGABYTE
ADDRESS_SPACE = 2048 * MEGABYTE  # beyond this even reserved memory is refused
PATIENCE = 90  # seconds of waiting, on a busy machine
REFUSED = 2
FORBIDDEN = ("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect")
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.truncate")


def run(trial: Trial) -> list[Outcome]:
    """Try a number of files of one format."""
    form = FORMATS[trial.random().choice(sorted(FORMATS))]
    return try_format(form, trial, mutated=BATCH - BUILT - HOSTILE, built=BUILT, hostile=HOSTILE)


def try_format(form: Format, trial: Trial, mutated: int, built: int, hostile: int) -> list[Outcome]:
    """Try so many files that are mutated, that are built, and that are hostile."""
    rng = trial.random()
    made = [*build(form.name, built, rng.randrange(2**32)), *_hostile(form, trial, hostile, rng), *[None] * mutated]
    return [_try_one(form, content, trial, rng, trial.folder / str(number)) for number, content in enumerate(made)]


def _hostile(form: Format, trial: Trial, count: int, rng: random.Random) -> list[bytes]:
    """Draw hostile files, if the format has any; mutate every other one."""
    seeds = sorted((trial.shared / "hostile" / form.name).glob("*"))
    drawn = [rng.choice(seeds).read_bytes() for _ in range(count if seeds else 0)]
    return [mutate(content, b"", rng) if number % 2 else content for number, content in enumerate(drawn)]


def _try_one(form: Format, content: bytes | None, trial: Trial, rng: random.Random, folder: Path) -> Outcome:
    path = _damaged(form, content, trial.shared / "files", rng, folder / "input")
    home = folder / "home"
    home.mkdir()
    before = _listing(folder / "input")
    ended = fork(_opening(form.open, path, home), home, Limits(ADDRESS_SPACE, CPU_SECONDS)).wait(PATIENCE)
    problem = _problem(ended) or _written(home, folder / "input", before)
    if problem is None:
        shutil.rmtree(folder)
    return Outcome(
        "files", form.name, problem, refused=ended.code == REFUSED, seconds=ended.cpu_seconds,
        megabytes=ended.megabytes, evidence=folder,
    )  # fmt: skip


def _damaged(form: Format, content: bytes | None, valid: Path, rng: random.Random, folder: Path) -> Path:
    """Copy the valid files of a format and replace or mutate one of them; returns what is to be opened."""
    shutil.copytree(valid / form.name, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    target = rng.choice(files)
    if content is None:
        others = sorted(path for path in valid.rglob("*") if path.is_file() and path.suffix != ".txt")
        content = mutate(target.read_bytes(), rng.choice(others).read_bytes(), rng)
    target.write_bytes(content)
    return folder / (valid / f"{form.name}.txt").read_text()


def _opening(open_file: Callable[[Path], object], path: Path, home: Path) -> Callable[[], None]:
    def task() -> None:
        os.environ.update(HOME=str(home), TMPDIR=str(home), XDG_CACHE_HOME=str(home), HF_HUB_OFFLINE="1")
        sys.addaudithook(_watch)
        try:
            open_file(path)
        except InputError as refusal:
            sys.stderr.write(f"recollect: {refusal}\n")
            raise SystemExit(REFUSED) from None

    return task


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Report what opening a file has no business with."""
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    device = event == "open" and str(arguments[0]).startswith("/dev/")
    if event.startswith((*FORBIDDEN, *CHANGES)) or (writes and not device):
        sys.stderr.write(f"watched: {event} {arguments!r:.200}\n")


def _problem(ended: Ended) -> str | None:
    if ended.hung:
        return "hung"
    if "watched: " in ended.err:
        return next(line for line in ended.err.splitlines() if "watched: " in line)[:200]
    if ended.has_traceback:
        return f"traceback: {ended.err.strip().splitlines()[-1][:200]}"
    if ended.code not in (0, REFUSED):
        return f"ended with {ended.code} after {ended.cpu_seconds:.1f} s of CPU time"
    if ended.cpu_seconds > CPU_SECONDS or ended.megabytes * MEGABYTE > MEMORY:
        return f"took {ended.cpu_seconds:.1f} s of CPU time and {ended.megabytes:.0f} MB"
    return None


def _written(home: Path, folder: Path, before: dict[str, int]) -> str | None:
    """Name a file that was written, changed or removed."""
    strange = [path.name for path in home.iterdir() if path.name not in ("stdout", "stderr")]
    if strange or _listing(folder) != before:
        return f"files were written or changed: {strange or 'beside the input'}"
    return None


def _listing(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}
