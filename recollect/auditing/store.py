"""Where an audit's results go as they come: a folder that can be resumed, or memory alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recollect.auditing.pictures import load_arrays, save_arrays
from recollect.records import Record, cell_key, read_record, write_record


class Store:
    """Records and pictures; with a folder each cell is written when it is finished, and found there again."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = Path(folder) if folder else None
        self.pictures: dict[str, np.ndarray] = {}
        self.film: dict[str, np.ndarray] = {}

    def find(self, cell: Mapping[str, Any], settings: Mapping[str, Any]) -> Record | None:
        """A finished cell of the same settings, if both its record and its pictures are there."""
        if self.folder is None:
            return None
        key = cell_key(cell, settings)
        record, pictures = self.folder / "cells" / f"{key}.json", self.folder / "cells" / f"{key}.npz"
        if not (record.exists() and pictures.exists()):
            return None
        self.pictures |= load_arrays(pictures)
        return read_record(record)

    def add(self, record: Record, pictures: Mapping[str, np.ndarray]) -> None:
        self.pictures |= pictures
        if self.folder:
            save_arrays(self.folder / "cells" / f"{record.key}.npz", pictures)
            write_record(self.folder / "cells", record)  # last: a record on disk is a cell that is finished

    def add_pictures(self, pictures: Mapping[str, np.ndarray]) -> None:
        self.pictures |= pictures
