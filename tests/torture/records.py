"""Edit the files of a run, finished or not, and run the command again: the result is right, or refused by name."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.cli.saved_audits import NOT_VERIFIED
from recollect.training.saved_state import FILE as STATE
from tests.torture.children import fork, recollect
from tests.torture.commands import PATIENCE, RESULTS
from tests.torture.kills import compare
from tests.torture.outcome import Outcome, complaint
from tests.torture.trial import Trial

VALUES: tuple[Any, ...] = (None, -1, 0, 10**30, 1e-300, "", "x" * 1000, [], {}, True, "NaN", float("nan"))
MOST_EDITS = 3
NETWORKS = "*.safetensors"  # of a training: its checkpoints and its state
NEVER_READ = ("log.txt", "loss.csv", "loss.svg")  # for people: a finished training is not written again


def run(trial: Trial) -> list[Outcome]:
    """Edit up to three files of a finished run, or of one that lacks some, and run the command again."""
    rng = trial.random()
    command = trial.draw_command(rng)
    results = trial.folder / RESULTS
    shutil.copytree(trial.reference(command).folder / RESULTS, results)
    files = sorted(path for path in results.rglob("*") if path.is_file())
    for path in rng.sample(files, rng.choice((0, 0, len(files) // 3, len(files) // 2))):
        path.unlink()
    edits = [_edit_one(results, rng) for _ in range(rng.randint(1, MOST_EDITS))]
    restart_trainings(results, trial.reference(command).folder / RESULTS)
    (trial.folder / "edits.txt").write_text("\n".join(edits))
    problem = _read_saved(trial, rng)
    ended = command.start(trial.inputs, trial.folder).wait(PATIENCE)
    problem = problem or complaint(ended, (0, 1, 2))
    if problem is None and ended.code != 2:
        problem = compare(command, trial, (*NEVER_READ, *_not_needed(command.name, trial.reference(command).folder)))
    problem = f"{problem} (after: {'; '.join(edits)})" if problem else None
    return [Outcome("records", command.name, problem, refused=ended.code == 2, evidence=trial.folder)]


def _read_saved(trial: Trial, rng: random.Random) -> str | None:
    """Have the edited audit verified, compared with itself or drawn again, if there is one."""
    audit = next((path.parent for path in sorted((trial.folder / RESULTS).rglob("audit.json"))), None)
    if audit is None:
        return None
    name = rng.choice(("verify", "compare", "report"))
    folders = [str(audit)] * (2 if name == "compare" else 1)
    ended = fork(recollect([name, *folders]), trial.folder / "saved").wait(PATIENCE)
    if ended.code == NOT_VERIFIED and not ended.has_traceback and "Not verified:" in ended.out:
        return None
    problem = complaint(ended, (0, 2))
    return f"{name}: {problem}" if problem else None


def _not_needed(command: str, reference: Path) -> list[str]:
    """Name the networks of a paper run: they are made again only where a cell is missing, and cells are compared."""
    if command != "paper":
        return []
    return [path.name for path in reference.rglob(NETWORKS)]


def restart_trainings(results: Path, reference: Path) -> None:
    """Remove all networks of a training that lacks some, and its state.

    A training that has its state says which network is missing. One that lacks both would end when it has the missing
    network again, at another step than an undisturbed one.
    """
    lacking = {
        path.parent.relative_to(reference)
        for path in reference.rglob(NETWORKS)
        if not (results / path.relative_to(reference)).is_file()
    }
    without_state = [folder for folder in lacking if not (results / folder / STATE).is_file()]
    for path in [path for folder in without_state for path in (results / folder).glob(NETWORKS) if path.is_file()]:
        path.unlink()


def _edit_one(results: Path, rng: random.Random) -> str:
    """Edit a file that is still there, and say how."""
    files = sorted(path for path in results.rglob("*") if path.is_file())
    if not files:
        return "no file is left"
    path, edit = rng.choice(files), rng.choice(EDITS)
    edit(path, files, rng)
    return f"{edit.__name__.strip('_')} {path.relative_to(results)}"


def _flip(path: Path, files: list[Path], rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 8) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _truncate(path: Path, files: list[Path], rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randint(0, len(content))])


def _swap(path: Path, files: list[Path], rng: random.Random) -> None:
    other = rng.choice([file for file in files if file.suffix == path.suffix])
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


def _remove(path: Path, files: list[Path], rng: random.Random) -> None:
    path.unlink()


def _replace_by_folder(path: Path, files: list[Path], rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _change_value(path: Path, files: list[Path], rng: random.Random) -> None:
    """Change one value of a JSON file; flip bits of others."""
    packed = path.suffix == ".gz"
    if path.suffix != ".json" and not packed:
        return _flip(path, files, rng)
    content = path.read_bytes()
    try:
        data = json.loads(gzip.decompress(content) if packed else content)
    except (ValueError, EOFError, OSError, zlib.error):  # an earlier edit broke it
        return _flip(path, files, rng)
    change_one(data, rng)
    text = json.dumps(data).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    return None


def change_one(data: Any, rng: random.Random) -> None:
    """Replace, nudge or remove one value somewhere inside."""
    while isinstance(data, (dict, list)) and data:
        key = rng.choice(sorted(data)) if isinstance(data, dict) else rng.randrange(len(data))
        inner = data[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.9:
            data = inner
            continue
        if rng.random() < 0.2:
            del data[key]
        elif isinstance(inner, (int, float)) and rng.random() < 0.5:
            data[key] = inner * 0.5 + 1e-3
        else:
            data[key] = rng.choice(VALUES)
        return


EDITS: tuple[Callable[[Path, list[Path], random.Random], None], ...] = (
    _flip, _truncate, _swap, _remove, _replace_by_folder, _change_value, _change_value,
)  # fmt: skip
