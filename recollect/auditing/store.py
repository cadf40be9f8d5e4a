"""Where an audit's results go as they come: a folder that can be resumed, or memory alone."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recollect.auditing.pictures import load_arrays, save_arrays
from recollect.errors import InputError
from recollect.records import Record, plain, read_json, read_record, write_json, write_record

_MADE = ("cells", "audit.json", "images.csv", "samples.npz", "traces.npz", "report.html")


class Store:
    """Records and pictures; with a folder each cell is written when it is finished, and found there again."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = Path(folder) if folder else None
        self.pictures: dict[str, np.ndarray] = {}
        self.film: dict[str, np.ndarray] = {}
        self._of_cell: dict[str, Mapping[str, np.ndarray]] = {}
        if self.folder:
            _make(self.folder)

    def begin(self, keys: Iterable[str]) -> None:
        """What an audit of other cells left in the folder is put aside, so that the two can never be mixed."""
        cells = self._cells()
        if not cells or not {path.stem for path in cells.glob("*.json")} - set(keys):
            return
        aside = next(p for n in range(1, 10**6) if not (p := cells.parent / "earlier" / str(n)).exists())
        _make(aside)
        for name in _MADE:
            if (made := cells.parent / name).exists():
                made.rename(aside / name)

    def find(self, key: str) -> Record | None:
        """A finished cell, if both its record and its pictures are there; also one of an audit that was put aside."""
        cells = self._cells()
        for place in [cells, *sorted(cells.parent.glob("earlier/*/cells"))] if cells else []:
            try:
                record, pictures = read_record(place / f"{key}.json"), load_arrays(place / f"{key}.npz")
            except (InputError, OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile):
                continue  # not there, or damaged: the cell is run again
            if place != cells:
                self.add(record, pictures)
            self._hold(key, pictures)
            return record
        return None

    def add(self, record: Record, pictures: Mapping[str, np.ndarray]) -> None:
        self._hold(record.key, pictures)
        if cells := self._cells():
            save_arrays(cells / f"{record.key}.npz", pictures)
            write_record(cells, record)  # last: a record on disk is a cell that is finished

    def once(self, name: str, settings: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What `make` gives, as JSON gives it back; read from the folder if it was made there before."""
        if not self.folder:
            return plain(make())
        identity = json.dumps(plain(settings), sort_keys=True)
        path = self.folder / "steps" / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}.json"
        if not path.exists():
            write_json(path, make())
        return read_json(path)

    def copy_to(self, folder: Path, records: Iterable[Record]) -> None:
        """The same cells in another folder."""
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


def _make(folder: Path) -> None:
    """A folder to write to, found out before the work and not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except FileExistsError:
        raise InputError(f"{folder} is a file; results need a folder of their own.") from None
    except OSError as error:
        raise InputError(f"Nothing can be written to the folder {folder}: {error.strerror or error}.") from None
