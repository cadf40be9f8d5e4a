"""Results on disk: a packed record for each cell, a JSON file for each training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from recollect.errors import InputError
from recollect.paper.cells import Cell, Fit
from recollect.records import (
    CellFolder,
    Record,
    earlier_folder,
    read_record,
    read_sealed,
    record_paths,
    write_sealed,
)

TRAINING_FORMAT, FACTS_FORMAT = "recollect-paper-training-1", "recollect-paper-facts-1"


class Store:
    """The folder results/paper/SCALE, small enough for the repository."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._cells = CellFolder(self.folder / "cells", packed=True)

    def find(self, cell: Cell) -> Record | None:
        """Read the record of a cell; a damaged one is reported, never silently computed again."""
        path = self._cells.path(cell.key)
        try:
            return _read_record(path) if path.exists() else None
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')}; remove it, and the cell is measured again.") from None

    def has(self, cell: Cell) -> bool:
        return self._cells.has(cell.key)

    def records(self) -> list[Record]:
        """Read all records, sorted by file name."""
        return [_read_record(path) for path in record_paths(self._cells.folder)]

    def add(self, record: Record) -> None:
        self._cells.add(record.compact())

    def set_aside(self, keys: Iterable[str], fit: Fit | None) -> Path:
        """Move records of cells, and of a training if one is given, out of the way; return the folder."""
        aside = earlier_folder(self.folder)
        paths = [self._cells.path(key) for key in keys]
        if fit is not None:
            paths.append(self._training_path(fit))
        for path in paths:
            to = aside / path.relative_to(self.folder)
            to.parent.mkdir(parents=True, exist_ok=True)
            path.rename(to)
        return aside

    def training(self, fit: Fit) -> dict[str, Any] | None:
        path = self._training_path(fit)
        return _read_training(path) if path.exists() else None

    def trainings(self) -> list[dict[str, Any]]:
        """Read all trainings, sorted by name."""
        return [_read_training(path) for path in sorted((self.folder / "trainings").glob("*.json"))]

    def add_training(self, fit: Fit, facts: dict[str, Any]) -> None:
        write_sealed(self._training_path(fit), TRAINING_FORMAT, facts)

    def has_finished(self, fit: Fit) -> bool:
        """Return whether the training ended: at its last milestone, or at its time limit."""
        facts = self.training(fit)
        return facts is not None and facts["finished"]

    def facts(self, name: str) -> dict[str, Any] | None:
        path = self._facts_path(name)
        if not path.exists():
            return None
        facts = read_sealed(path, FACTS_FORMAT, "a file of results")
        if facts.pop("experiment", None) != name:
            raise InputError(f"{path} holds the results of another experiment; remove it, and they are computed again.")
        return facts

    def add_facts(self, name: str, facts: dict[str, Any]) -> None:
        write_sealed(self._facts_path(name), FACTS_FORMAT, {"experiment": name, **facts})

    def was_not_reached(self, cell: Cell) -> bool:
        """Return whether the training ended above the cell's loss."""
        facts = self.training(cell.fit)
        return facts is not None and facts["finished"] and cell.loss not in losses_reached(facts)

    def is_missing(self, cell: Cell) -> bool:
        """Return whether the cell is still to be computed; the best weights replace a last loss not reached."""
        if self.has(cell):
            return False
        if cell.loss is None or not self.was_not_reached(cell):
            return True
        return cell.is_at_last_loss and self.is_missing(replace(cell, loss=None))

    def cell_or_best(self, cell: Cell) -> Cell:
        """Return the cell itself, or the cell of the best weights if only those of a last loss are recorded."""
        best = replace(cell, loss=None)
        if cell.is_at_last_loss and not self.has(cell) and self.has(best):
            return best
        return cell

    def find_or_best(self, cell: Cell) -> Record | None:
        return self.find(self.cell_or_best(cell))

    def _training_path(self, fit: Fit) -> Path:
        return self.folder / "trainings" / f"{fit.name}.json"

    def _facts_path(self, name: str) -> Path:
        return self.folder / "facts" / f"{name}.json"


def _read_record(path: Path) -> Record:
    """Read a record, once for all tables and figures that need it unless its file changes."""
    file = path.stat()
    return _read_version(path, file.st_ino, file.st_mtime_ns, file.st_size)


@cache
def _read_version(path: Path, *_version: int) -> Record:
    return read_record(path)


def losses_reached(training: Mapping[str, Any]) -> set[float]:
    """List the milestones that a recorded training reached."""
    return {milestone["wanted"] for milestone in training["milestones"]}


def _read_training(path: Path) -> dict[str, Any]:
    facts = read_sealed(path, TRAINING_FORMAT, "a record of a training")
    if facts.get("training") != path.stem:
        raise InputError(f"{path} is the record of another training, {facts.get('training')}.")
    return facts
