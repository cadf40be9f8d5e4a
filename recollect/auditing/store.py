"""Where an audit's results are kept: a folder that can be resumed, or memory alone."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.auditing.statistics import image_columns
from recollect.errors import InputError
from recollect.files.locks import lock_folder
from recollect.records import (
    CellFolder,
    Record,
    earlier_folder,
    load_arrays,
    plain,
    read_sealed,
    save_arrays,
    short_hash,
    write_sealed,
)

if TYPE_CHECKING:
    from recollect.auditing.model_identity import ModelIdentity

MODELS_FORMAT, STEP_FORMAT = "recollect-models-1", "recollect-step-1"
_FORMULA = tuple("=+-@\t\r\n'＝＋－＠")  # how a formula starts, or a guarded text
_MADE = ("cells", "audit.json", "images.csv", "samples.npz", "traces.npz", "report.html", "SHA256SUMS")


class Store:
    """Keeps records and pictures; with a folder, each finished cell is written at once and found there again.

    Without pictures, a folder that holds some is refused: nothing in it may show an image then.
    """

    def __init__(self, folder: str | Path | None, *, with_pictures: bool = True) -> None:
        self.folder = Path(folder) if folder else None
        self.with_pictures = with_pictures
        self.pictures: dict[str, np.ndarray] = {}
        self.traces: dict[str, np.ndarray] = {}
        self._of_cell: dict[str, Mapping[str, np.ndarray]] = {}
        if self.folder:
            _make(self.folder)
            if not with_pictures:
                _check_no_pictures(self.folder)

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes out of the folder, if there is one."""
        return lock_folder(self.folder) if self.folder else nullcontext()

    def recognise(self, identity: ModelIdentity) -> ModelIdentity:
        """Return the identity under which this model was audited here before, if it differs by rounding alone."""
        if not self.folder:
            return identity
        path = self.folder / "models.json"
        known = _read_models(path)
        for earlier in known.values():
            if earlier.matches(identity):
                return earlier
        write_sealed(path, MODELS_FORMAT, {"models": {**known, identity.hash: identity}})
        return identity

    def begin(self, keys: Iterable[str]) -> str:
        """Put the results of an audit of other cells aside, so that the two are never mixed; say where they are."""
        cells = self._cells()
        if not cells or not {path.stem for path in cells.glob("*.json")} - set(keys):
            return ""
        aside = earlier_folder(cells.parent)
        _make(aside)
        for name in _MADE:
            if (made := cells.parent / name).exists():
                made.rename(aside / name)
        return (
            f"{cells.parent} held an audit of another model, other images or other settings; it was moved to {aside}, "
            "and a new audit starts."
        )

    def find(self, key: str, ids: Sequence[str], training_ids: Sequence[str] = ()) -> Record | None:
        """Find a finished cell with its pictures; a cell of an audit that was put aside is copied back.

        The record gets these ids: files may have been renamed since, and a cell is found by its pixels. The same holds
        for the training images that it names as nearest.
        """
        cells = self._cells()
        if cells is None:
            return None
        for folder in [cells, *sorted(cells.parent.glob("earlier/*/cells"))]:
            finished = _read_cell(folder, key, len(ids), self.with_pictures)
            if finished is None or len(finished[0].ids) != len(ids):
                continue
            record, pictures = finished
            renamed = _with_names(record, ids, training_ids)
            if folder != cells or record != renamed:
                self.add(renamed, pictures)
            self._hold(key, pictures)
            return renamed
        return None

    def add(self, record: Record, pictures: Mapping[str, np.ndarray]) -> None:
        """Keep a finished cell."""
        self._hold(record.key, pictures)
        if cells := self._cells():
            pictures_hash = save_arrays(cells / f"{record.key}.npz", pictures) if pictures else None
            # Last: a record on disk is a cell that is finished.
            CellFolder(cells).add(replace(record, pictures_hash=pictures_hash))

    def add_pictures(self, pictures: Mapping[str, np.ndarray], set_name: str) -> None:
        """Keep pictures of a set that belong to no cell."""
        self.pictures |= {f"{kind}/{set_name}": picture for kind, picture in pictures.items()}

    def once(self, name: str, settings: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """Make a result once: a folder that holds it is read; plain values in both cases."""
        if not self.folder:
            return plain(make())
        identity = {"step": name, "settings": plain(settings)}
        path = self.folder / "steps" / f"{name}-{short_hash(settings)}.json"
        try:
            saved = read_sealed(path, STEP_FORMAT, "a step of an audit")
            if saved["step"] == name and saved["settings"] == identity["settings"]:
                return saved["result"]
        except InputError:
            pass  # not there yet, or damaged: it is made again
        result = plain(make())
        write_sealed(path, STEP_FORMAT, {**identity, "result": result})
        return result

    def copy_to(self, folder: Path, records: Iterable[Record]) -> None:
        """Write the same cells to another folder."""
        records = list(records)
        other = Store(folder, with_pictures=self.with_pictures)
        other.begin(record.key for record in records)
        for record in records:
            other.add(record, self._of_cell[record.key])

    def _hold(self, key: str, pictures: Mapping[str, np.ndarray]) -> None:
        self._of_cell[key] = pictures
        self.pictures |= pictures

    def _cells(self) -> Path | None:
        return self.folder / "cells" if self.folder else None


def _with_names(record: Record, ids: Sequence[str], training_ids: Sequence[str]) -> Record:
    nearest = record.nearest
    if record.nearest_index is not None and training_ids:
        nearest = [None if position is None else training_ids[position] for position in record.nearest_index]
    return replace(record, ids=list(ids), nearest=nearest)


def write_csv(file: Path, records: Sequence[Record]) -> None:
    """Write the per-image table; values that are unknown or not finite are left empty.

    A spreadsheet takes a text that starts like a formula for one, and runs it. Such a text is written after a ', and so
    is a text that starts with a ' itself: without a first ' every text is what it was.
    """
    with file.open("w", newline="", encoding="utf-8", errors="backslashreplace") as opened:
        writer = csv.writer(opened)
        for number, record in enumerate(records):
            columns = image_columns(record)
            if number == 0:
                writer.writerow(columns)
            writer.writerows([_csv_value(value) for value in row] for row in zip(*columns.values(), strict=True))


def _read_models(path: Path) -> dict[str, ModelIdentity]:
    """Read the models that were audited in a folder; a damaged list only means that none is recognised."""
    from recollect.auditing.model_identity import ModelIdentity  # brings torch, which readers of audits do without

    try:
        models = read_sealed(path, MODELS_FORMAT, "a list of models")["models"]
    except InputError:
        return {}
    return {name: ModelIdentity.read(recorded) for name, recorded in models.items()}


def _read_cell(folder: Path, key: str, images: int, with_pictures: bool) -> tuple[Record, dict[str, np.ndarray]] | None:
    """Read a finished cell; None where it, or its pictures, are missing or damaged: it is run again then."""
    try:
        record = CellFolder(folder).find(key, images)
        if record is None or not with_pictures:
            return None if record is None else (record, {})
        if record.pictures_hash is None:
            return None
        return record, load_arrays(folder / f"{key}.npz", record.pictures_hash)
    except InputError:
        return None


def _csv_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _check_no_pictures(folder: Path) -> None:
    held = next(folder.rglob("*.npz"), None)
    if held:
        raise InputError(
            f"{folder} holds pictures of an earlier audit ({held.relative_to(folder)}); remove that audit, or choose "
            "another folder for one without pictures."
        )


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
