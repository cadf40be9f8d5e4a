"""Results on disk: a file of JSON lines for each training, and single files while cells are computed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.errors import InputError
from recollect.paper.cells import Cell, Fit
from recollect.paper.record_file import TRAINING_FORMAT, RecordFile, cell_name, checked_training, file_name
from recollect.record_lines import LINES
from recollect.records import CellFolder, Record, earlier_folder, read_json, read_records, read_sealed, write_sealed
from recollect.version import __version__

FACTS_FORMAT = "recollect-paper-facts-1"
RECORDS, COMPUTING = "records", "computing"


class Store:
    """The folder results/paper/SCALE, small enough for the repository.

    A finished cell or training is a single file in `computing` at first, so that a run that is killed loses nothing.
    `pack` moves these into `records`, a file for each training.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._single = CellFolder(self.folder / COMPUTING / "cells", packed=True)
        self._read: dict[Path, tuple[tuple[int, int], RecordFile]] = {}  # with the time and size of the file

    def find(self, cell: Cell) -> Record | None:
        """Read the record of a cell; a damaged one is reported, never silently computed again.

        One of an earlier version of the package does not count: a suite is of one version.
        """
        record = self._single_or_packed(cell)
        return record.with_paste(cell.paste) if record is not None and is_current(record.provenance) else None

    def find_earlier(self, cell: Cell) -> Record | None:
        """Read a record of this cell that was measured with other settings or an earlier version."""
        record = self._file_of(cell).by_name.get(cell_name(cell.identity))
        if record is None or (record.key == cell.key and is_current(record.provenance)):
            return None
        return record.with_paste(cell.paste)

    def has(self, cell: Cell) -> bool:
        record = self._file_of(cell).records.get(cell.key)
        return self._single.has(cell.key) or (record is not None and is_current(record.provenance))

    def _single_or_packed(self, cell: Cell) -> Record | None:
        try:
            single = self._single.find(cell.key)
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')}; remove it, and the cell is measured again.") from None
        return single or self._file_of(cell).records.get(cell.key)

    def records(self) -> list[Record]:
        """Read all records, in the order of their keys; of each cell the last one alone."""
        by_name = {cell_name(r.cell): r for path in self._paths() for r in self._file(path).records.values()}
        by_name |= {cell_name(record.cell): record for record in read_records(self._single.folder)}
        return sorted(by_name.values(), key=lambda record: record.key)

    def add(self, record: Record) -> None:
        """Write a record without what nothing of the suite shows: thousands of records lie in the repository."""
        self._single.add(replace(record.compact(), mask_accuracy=None, mask_iou=None))

    def pack(self) -> None:
        """Move single files into the files of their trainings; each file is written whole before any is removed."""
        records: dict[str, list[Record]] = {}
        for record in read_records(self._single.folder):
            records.setdefault(file_name(record.cell), []).append(record)
        trainings = {f"{path.stem}{LINES}": _read_training(path) for path in self._single_trainings()}
        for name in sorted({*records, *trainings}):
            path = self.folder / RECORDS / name
            file = self._file(path).with_records(records.get(name, ()))
            if name in trainings:
                file = replace(file, training=trainings[name])
            file.write(path)
        if (self.folder / COMPUTING).exists():
            shutil.rmtree(self.folder / COMPUTING)

    def set_aside(self, keys: Iterable[str], fit: Fit | None) -> Path:
        """Move records of cells, and of a training if one is given, into another folder, and return it."""
        self.pack()
        aside, wanted = earlier_folder(self.folder), set(keys)
        for path in self._paths():
            file = self._file(path)
            moved = replace(file, training=None, records={k: r for k, r in file.records.items() if k in wanted})
            left = file.without(moved.records)
            if fit is not None and path.stem == fit.name:
                moved, left = replace(moved, training=file.training), replace(left, training=None)
            if moved.records or moved.training:
                moved.write(aside / RECORDS / path.name)
                left.write(path)
        return aside

    def training(self, fit: Fit) -> dict[str, Any] | None:
        """Read the record of a training; one of another version, recipe or other weights does not count."""
        facts = self._training_named(fit.name)
        if facts is None or not is_current(facts.get("provenance", {})):
            return None
        return facts if facts.get("fit", fit.identity) == fit.identity else None

    def trainings(self) -> list[dict[str, Any]]:
        """Read all trainings, sorted by name."""
        names = {path.stem for path in self._paths()}
        names |= {path.stem for path in self._single_trainings()}
        return [facts for name in sorted(names) if (facts := self._training_named(name))]

    def add_training(self, fit: Fit, facts: dict[str, Any]) -> None:
        write_sealed(self._training_path(fit.name), TRAINING_FORMAT, facts)

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

    def has_facts(self, name: str) -> bool:
        """Return whether the results of an experiment are there, and of this version of the package."""
        facts = self.facts(name)
        return facts is not None and "provenance" in facts and is_current(facts["provenance"])

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

    def shown(self, cell: Cell) -> Record | None:
        """Return what tables and figures show: the record, or an earlier one until the cell is measured again."""
        cells = [cell, replace(cell, loss=None)] if cell.is_at_last_loss else [cell]
        records = (find(one) for find in (self.find, self.find_earlier) for one in cells)
        return next((record for record in records if record), None)

    def versions_shown(self, cells: Iterable[Cell]) -> tuple[int, Counter[str]]:
        """Count the records that a table of these cells shows, and by their version those of an earlier one."""
        shown = {cell.key: record for cell in cells if (record := self.shown(cell))}
        versions = [version_of(record.provenance) for record in shown.values()]
        return len(shown), Counter(version for version in versions if version != __version__)

    def other_settings_shown(self, cells: Iterable[Cell]) -> Counter[str]:
        """Count by method the records shown that this version measured, but with other settings than it has now."""
        measured = {cell.key: cell for cell in cells if not self.find_or_best(cell)}.values()
        return Counter(cell.method for cell in measured if (r := self.shown(cell)) and is_current(r.provenance))

    def _file_of(self, cell: Cell) -> RecordFile:
        return self._file(self.folder / RECORDS / file_name(cell.identity))

    def _file(self, path: Path) -> RecordFile:
        """Read a file once, and again if it was changed."""
        try:
            status = path.stat()
        except OSError:
            return RecordFile()
        state = (status.st_mtime_ns, status.st_size)
        if path not in self._read or self._read[path][0] != state:
            self._read[path] = (state, RecordFile.read(path))
        return self._read[path][1]

    def _paths(self) -> list[Path]:
        return sorted((self.folder / RECORDS).glob(f"*{LINES}"))

    def _single_trainings(self) -> list[Path]:
        return sorted((self.folder / COMPUTING / "trainings").glob("*.json"))

    def _training_named(self, name: str) -> dict[str, Any] | None:
        if facts := _read_training(self._training_path(name)):
            return facts
        packed = self._file(self.folder / RECORDS / f"{name}{LINES}").training
        return dict(packed) if packed else None

    def _training_path(self, name: str) -> Path:
        return self.folder / COMPUTING / "trainings" / f"{name}.json"

    def _facts_path(self, name: str) -> Path:
        return self.folder / "facts" / f"{name}.json"


def version_of(provenance: Mapping[str, Any]) -> str:
    """Read the version of the package that made a record; one without a version counts as of this one."""
    return str(provenance.get("versions", {}).get("recollect", __version__))


def is_current(provenance: Mapping[str, Any]) -> bool:
    """Return whether this version of the package made a record."""
    return version_of(provenance) == __version__


def losses_reached(training: Mapping[str, Any]) -> set[float]:
    """List the milestones that a recorded training reached."""
    return {milestone["wanted"] for milestone in training["milestones"]}


def _read_training(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    return checked_training(read_json(path), path.stem, str(path))
