"""Where an audit's results are kept: a folder that can be resumed, or memory alone."""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recollect.auditing.pictures import load_arrays, save_arrays
from recollect.auditing.statistics import image_columns
from recollect.errors import InputError
from recollect.records import CellFolder, Record, compute_once, plain, short_hash

_MADE = ("cells", "audit.json", "images.csv", "samples.npz", "traces.npz", "report.html")


class Store:
    """Keeps records and pictures; with a folder, each finished cell is written at once and found there again."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = Path(folder) if folder else None
        self.pictures: dict[str, np.ndarray] = {}
        self.traces: dict[str, np.ndarray] = {}
        self._of_cell: dict[str, Mapping[str, np.ndarray]] = {}
        if self.folder:
            _make(self.folder)

    def begin(self, keys: Iterable[str]) -> None:
        """Put the results of an audit of other cells aside, so that the two are never mixed."""
        cells = self._cells()
        if not cells or not {path.stem for path in cells.glob("*.json")} - set(keys):
            return
        aside = next(p for n in range(1, 10**6) if not (p := cells.parent / "earlier" / str(n)).exists())
        _make(aside)
        for name in _MADE:
            if (made := cells.parent / name).exists():
                made.rename(aside / name)

    def find(self, key: str) -> Record | None:
        """Find a finished cell with its pictures; a cell of an audit that was put aside is copied back."""
        cells = self._cells()
        if cells is None:
            return None
        for folder in [cells, *sorted(cells.parent.glob("earlier/*/cells"))]:
            try:
                record, pictures = CellFolder(folder).find(key), load_arrays(folder / f"{key}.npz")
            except (InputError, OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile):
                continue  # damaged, or without pictures: the cell is run again
            if record is None:
                continue
            if folder != cells:
                self.add(record, pictures)
            self._hold(key, pictures)
            return record
        return None

    def add(self, record: Record, pictures: Mapping[str, np.ndarray]) -> None:
        """Keep a finished cell."""
        self._hold(record.key, pictures)
        if cells := self._cells():
            save_arrays(cells / f"{record.key}.npz", pictures)
            CellFolder(cells).add(record)  # last: a record on disk is a cell that is finished

    def add_pictures(self, pictures: Mapping[str, np.ndarray], set_name: str) -> None:
        """Keep pictures of a set that belong to no cell."""
        self.pictures |= {f"{kind}/{set_name}": picture for kind, picture in pictures.items()}

    def once(self, name: str, settings: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """Make a result once: a folder that holds it gives it back; plain values either way."""
        if not self.folder:
            return plain(make())
        return compute_once(self.folder / "steps" / f"{name}-{short_hash(settings)}.json", make)

    def copy_to(self, folder: Path, records: Iterable[Record]) -> None:
        """Write the same cells to another folder."""
        records = list(records)
        other = Store(folder)
        other.begin(record.key for record in records)
        for record in records:
            other.add(record, self._of_cell[record.key])

    def _hold(self, key: str, pictures: Mapping[str, np.ndarray]) -> None:
        self._of_cell[key] = pictures
        self.pictures |= pictures

    def _cells(self) -> Path | None:
        return self.folder / "cells" if self.folder else None


def write_csv(file: Path, records: Sequence[Record]) -> None:
    """Write the per-image table; values that are unknown or not finite are left empty."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        for number, record in enumerate(records):
            columns = image_columns(record)
            if number == 0:
                writer.writerow(columns)
            writer.writerows([_csv_value(value) for value in row] for row in zip(*columns.values(), strict=True))


def _csv_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value


def _make(folder: Path) -> None:
    """Make a folder and try to write to it, before hours of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except FileExistsError:
        raise InputError(f"{folder} is a file; results need a folder of their own.") from None
    except OSError as error:
        raise InputError(f"Nothing can be written to the folder {folder}: {error.strerror or error}.") from None
