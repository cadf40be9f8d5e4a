"""What has been computed, on disk: a packed record a cell, one JSON a training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.errors import InputError
from recollect.paper.cells import Cell, Fit
from recollect.records import PACKED, Record, read_json, read_record, write_json, write_record


class Results:
    """The folder results/paper/SCALE: small enough to be kept in a repository."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def find(self, cell: Cell) -> Record | None:
        """The record of a cell; a damaged one is told, never quietly computed again."""
        path = self._cell_path(cell)
        if not path.exists():
            return None
        try:
            record = read_record(path)
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')}; without it the cell is measured again.") from None
        if path.name != f"{record.key}{PACKED}":
            raise InputError(
                f"{path} is the record of another cell, {record.key}; without it this one is measured again."
            )
        return record

    def has(self, cell: Cell) -> bool:
        return self._cell_path(cell).exists()

    def records(self) -> Iterator[Record]:
        """All cells, in the order of their names."""
        return map(read_record, sorted((self.folder / "cells").glob(f"*{PACKED}")))

    def add(self, record: Record) -> None:
        write_record(self.folder / "cells", record.compact(), packed=True)

    def training(self, fit: Fit) -> dict[str, Any] | None:
        path = self._training_path(fit)
        return read_json(path) if path.exists() else None

    def trainings(self) -> list[dict[str, Any]]:
        """All that are recorded, by name."""
        return [read_json(path) for path in sorted((self.folder / "trainings").glob("*.json"))]

    def add_training(self, fit: Fit, facts: dict[str, Any]) -> None:
        write_json(self._training_path(fit), facts)

    def facts(self, name: str) -> dict[str, Any] | None:
        path = self.folder / "facts" / f"{name}.json"
        return read_json(path) if path.exists() else None

    def add_facts(self, name: str, facts: dict[str, Any]) -> None:
        write_json(self.folder / "facts" / f"{name}.json", facts)

    def out_of_reach(self, cell: Cell) -> bool:
        """Whether the training was given its full time and did not come down to this loss."""
        facts = self.training(cell.fit) or {"finished": False}
        return facts["finished"] and cell.loss not in losses_reached(facts)

    def missing(self, cell: Cell) -> bool:
        """Whether there is something to compute; where the last loss was not reached, the best stands for it."""
        if self.has(cell):
            return False
        if cell.loss is None or not self.out_of_reach(cell):
            return True
        return cell.loss == cell.fit.milestones[-1] and self.missing(replace(cell, loss=None))

    def stand_in(self, cell: Cell) -> Cell:
        """The cell itself, or for the last loss, if there is nothing of it, that of the best weights."""
        best = replace(cell, loss=None)
        return best if cell.loss == cell.fit.milestones[-1] and not self.has(cell) and self.has(best) else cell

    def best_of(self, cell: Cell) -> Record | None:
        return self.find(self.stand_in(cell))

    def _cell_path(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}{PACKED}"

    def _training_path(self, fit: Fit) -> Path:
        return self.folder / "trainings" / f"{fit.name}.json"


def losses_reached(training: Mapping[str, Any]) -> set[float]:
    """By what is recorded of a training."""
    return {milestone["wanted"] for milestone in training["milestones"]}
