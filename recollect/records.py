"""Results on disk: one JSON file a finished cell, packed or not, written atomically, readable without recollect."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import platform
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from decimal import ROUND_DOWN, Context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.scoring import Score
from recollect.version import __version__

FORMAT = "recollect-record-1"
AUDIT_FORMAT = "recollect-audit-1"  # of audit.json, beside the records
PACKED = ".json.gz"
PER_IMAGE = ("ids", "mse", "rounds", "steps", "stop", "mask_accuracy", "mask_iou")  # the columns of a record
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_DOWN)


@dataclass(frozen=True)
class Record:
    """One cell: one method on one set of images under one mask, with the outcome of every image."""

    cell: Mapping[str, Any]  # what tells this cell from others: set, mask, method, and whatever an experiment adds
    settings: Mapping[str, Any]  # the method's hyperparameters and all else that decides the numbers
    ids: list[str]  # empty in a compact record, where the set's name and hash tell them
    mse: list[float]
    rounds: list[int]
    steps: list[int]
    stop: list[str]
    mask_accuracy: list[float] | None = None  # where a mask was estimated: share of values told right
    mask_iou: list[float] | None = None  # and intersection over union of the erased values
    seconds: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> Score:
        return Score(torch.tensor([math.nan if m is None else m for m in self.mse], dtype=torch.float64))

    @property
    def key(self) -> str:
        """A file name for the cell: readable, and different whenever the cell or its settings are."""
        return cell_key(self.cell, self.settings)

    def compact(self) -> Record:
        """The same cell in a tenth of the space: errors cut to four digits, masks to three and two, no ids.

        Cut and not rounded: whether an error is below a threshold of up to four digits stays as it was.
        """
        errors = [float(_FOUR_DIGITS.create_decimal(repr(m))) for m in self.mse]
        accuracy, iou = _rounded(self.mask_accuracy, 3), _rounded(self.mask_iou, 2)
        return replace(self, ids=[], mse=errors, mask_accuracy=accuracy, mask_iou=iou)


@dataclass(frozen=True)
class CellFolder:
    """A folder with one record file for each finished cell: a run that is stopped resumes from it."""

    folder: Path
    packed: bool = False

    def path(self, key: str) -> Path:
        return self.folder / f"{key}{PACKED if self.packed else '.json'}"

    def has(self, key: str) -> bool:
        return self.path(key).exists()

    def find(self, key: str) -> Record | None:
        """Read the record of a cell; a damaged file, or one of another cell, is an InputError."""
        path = self.path(key)
        if not path.exists():
            return None
        record = read_record(path)
        if record.key != key:
            raise InputError(f"{path} is the record of another cell, {record.key}.")
        return record

    def records(self) -> list[Record]:
        """Read all records, sorted by file name."""
        return read_records(self.folder)

    def add(self, record: Record) -> Path:
        return write_record(self.folder, record, packed=self.packed)


def cell_key(cell: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    words = "-".join(_safe(str(v)) for v in cell.values())[:80]
    return f"{words}-{short_hash([cell, settings])}"


def short_hash(settings: Any) -> str:
    """Hash settings: equal settings give equal hashes, whatever the order of their names."""
    identity = json.dumps(plain(settings), sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:10]


def compute_once(path: Path, compute: Callable[[], Any]) -> Any:
    """Return the JSON of a file; if the file does not exist yet, compute and write it first."""
    if not path.exists():
        write_json(path, compute())
    return read_json(path)


def write_record(folder: str | Path, record: Record, *, packed: bool = False) -> Path:
    path = Path(folder) / f"{record.key}{PACKED if packed else '.json'}"
    data = {"format": FORMAT, **asdict(record)}
    per_round = record.steps[0] // max(1, record.rounds[0]) if packed and record.rounds else 0
    if per_round and record.steps == [per_round * rounds for rounds in record.rounds]:
        data["steps"] = per_round  # one number tells them all
    write_json(path, data)
    return path


def read_record(path: str | Path) -> Record:
    data = read_json(path)
    known = {"format"} | {f.name for f in fields(Record)}
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT or not set(data) <= known:
        raise InputError(f"{path} is not a record that this version of recollect can read.")
    try:
        if isinstance(data.get("steps"), int):
            data["steps"] = [data["steps"] * rounds for rounds in data["rounds"]]
        return Record(**data)
    except (TypeError, KeyError) as error:
        raise InputError(f"{path} is a record with parts missing: {error}.") from None


def read_records(folder: str | Path) -> list[Record]:
    """All records of a folder, packed or not, in the order of their names."""
    paths = [path for path in Path(folder).glob("*.json*") if path.name.endswith((".json", PACKED))]
    return [read_record(path) for path in sorted(paths)]


def write_json(path: str | Path, data: Any) -> None:
    """JSON for people to read, or packed where the name ends in .gz; equal data makes equal files."""
    data, packed = plain(data), Path(path).suffix == ".gz"
    separators, indent = ((",", ":"), None) if packed else (None, 1)
    content = (json.dumps(data, separators=separators, indent=indent, allow_nan=False) + "\n").encode()
    with atomically(Path(path)) as file:
        file.write_bytes(gzip.compress(content, mtime=0) if packed else content)


def read_json(path: str | Path) -> Any:
    try:
        content = Path(path).read_bytes()
        return json.loads(gzip.decompress(content) if Path(path).suffix == ".gz" else content)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when all is written, and vanishes otherwise."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:  # a full disk, a folder that may not be written to, a file where a folder should be
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary:
            temporary.unlink(missing_ok=True)


def provenance(device: torch.device | str = "cpu", **more: Any) -> dict[str, Any]:
    """What has to be known to judge or repeat a number: versions, machine, and what the caller adds."""
    name = torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else cpu_name()
    versions = {
        "recollect": __version__, "torch": torch.__version__, "numpy": np.__version__,
        "python": platform.python_version(), "cuda": torch.version.cuda,
    }  # fmt: skip
    threads = torch.get_num_threads()
    return {"versions": versions, "device": name, "threads": threads, "system": platform.platform(), **more}


def cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines: Iterable[str] = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{model or platform.machine()}, {os.cpu_count()} cores"


def plain(value: Any) -> Any:
    """Any setting as JSON: dataclasses as dicts, functions by name, what is not finite as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return getattr(value, "__name__", str(value))


def _rounded(column: list[float] | None, digits: int) -> list[float] | None:
    return None if column is None else [round(value, digits) for value in column]


def _safe(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._" else "_" for c in text)
