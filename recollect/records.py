"""Results on disk: a JSON file for each finished cell, packed or not, written atomically, readable by anyone."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import platform
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from decimal import ROUND_DOWN, Context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import InputError, is_whole
from recollect.files.limits import DEEPEST_RECORD, IMAGES, RECORD_BYTES, RECORD_PARTS
from recollect.files.locks import UNFINISHED, check_present
from recollect.record_schema import COLUMNS, problem_of
from recollect.scoring import Score
from recollect.version import __version__

if TYPE_CHECKING:  # records are read without torch, which takes seconds to import
    import torch

FORMAT = "recollect-record-2"
AUDIT_FORMAT = "recollect-audit-2"  # of audit.json, beside the records
PACKED = ".json.gz"
SET_LABELS = {"train": "training", "control": "unseen"}  # the sets of an audit
ALL_MASKS, ANY_MASK = "all masks", "any mask"  # in place of a mask: every try counts; an image counts by its best try
PER_IMAGE = (
    "ids", "mse", "rounds", "steps", "stop", "mask_accuracy", "mask_iou", "nearest", "nearest_index", "nearest_mse",
)  # fmt: skip  # the columns of a record
# Parts that only audits measure, or only the paper's suite: other records leave them out.
OF_AUDITS = ("nearest", "nearest_index", "nearest_mse")
OF_SUITE = ("mse_pasted", "mse_unpasted", "cycles")
BYTES_OF_IMAGE = 2048  # of a record, at most: ten numbers, its id and that of the nearest image
_ALREADY_JSON = {bool, int, str, type(None)}
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_DOWN)


@dataclass(frozen=True)
class Record:
    """One cell: one method on one set of images under one mask, with the outcome of every image.

    Attributes:
        cell: Set, mask, method, and whatever an experiment adds.
        settings: The method's hyperparameters and all else that decides the numbers.
        ids: A name for each image.
        mse: The error of each image.
        stop: Why the recovery of each image ended.
        provenance: Versions, device and times.

    Examples:
        >>> import recollect
        >>> result = recollect.audit(lambda x: x * 0, train="photos?count=4&size=8", masks="half", methods="iterate")
        >>> dict(result.records[0].cell)
        {'set': 'train', 'mask': 'half', 'method': 'iterate'}
    """

    cell: Mapping[str, Any]  # what tells this cell from others: set, mask, method, and whatever an experiment adds
    settings: Mapping[str, Any]  # the method's hyperparameters and all else that decides the numbers
    ids: list[str]  # empty in a compact record, where the set's name and hash tell them
    mse: list[float]
    rounds: list[int]
    steps: list[int]
    stop: list[str]
    mask_accuracy: list[float] | None = None  # where a mask was estimated: share of values estimated right
    mask_iou: list[float] | None = None  # and intersection over union of the erased values
    nearest: list[str | None] | None = None  # of an audit: the training image nearest to each estimate ...
    nearest_index: list[int | None] | None = None  # ... its position in the training set ...
    nearest_mse: list[float | None] | None = None  # ... and its error; None where an estimate is not finite
    mse_pasted: list[float] | None = None  # of the paper's suite: with kept values of y put back by the final mask ...
    mse_unpasted: list[float] | None = None  # ... and without, if the method itself puts them back
    cycles: list[list[float]] | None = None  # for each image in a cycle: position, rounds, lowest and highest error
    seconds: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    pictures_hash: str | None = field(default=None, compare=False)  # SHA-256 of the file of pictures beside it

    @property
    def score(self) -> Score:
        return Score(np.array(self.mse, dtype=np.float64))  # null becomes nan

    def with_paste(self, paste: bool | None) -> Record | None:
        """Return the record with the errors that pasting gives, or leaving it; None if these were not measured.

        Without a preference, and for a method that does so itself, the record stays as it is.
        """
        other = self.mse_pasted if paste else self.mse_unpasted
        opposite = self.mse_unpasted if paste else self.mse_pasted
        if paste is None or (other is None and opposite is not None):
            return self
        return None if other is None else replace(self, mse=other)

    @property
    def key(self) -> str:
        """A file name for the cell: readable, and different whenever the cell or its settings are."""
        return cell_key(self.cell, self.settings)

    def compact(self) -> Record:
        """Return the same cell in a tenth of the space: errors cut to four digits, masks to three and two, no ids.

        Cut and not rounded: whether an error is below a threshold of up to four digits stays as it was.
        """
        cycles = self.cycles and [[*cycle[:2], *_cut(cycle[2:])] for cycle in self.cycles]
        return replace(
            self, ids=[], mse=_cut(self.mse), mask_accuracy=_rounded(self.mask_accuracy, 3),
            mask_iou=_rounded(self.mask_iou, 2), mse_pasted=self.mse_pasted and _cut(self.mse_pasted),
            mse_unpasted=self.mse_unpasted and _cut(self.mse_unpasted), cycles=cycles,
        )  # fmt: skip


@dataclass(frozen=True)
class CellFolder:
    """A folder with one record file for each finished cell: a run that is stopped resumes from it."""

    folder: Path
    packed: bool = False

    def path(self, key: str) -> Path:
        return record_path(self.folder, key, packed=self.packed)

    def has(self, key: str) -> bool:
        return self.path(key).exists()

    def find(self, key: str, images: int = 0) -> Record | None:
        """Read the record of a cell of so many images; a damaged file, or one of another cell, is an InputError."""
        path = self.path(key)
        return read_record(path, images) if path.exists() else None

    def add(self, record: Record) -> Path:
        return write_record(self.folder, record, packed=self.packed)


def earlier_folder(folder: Path) -> Path:
    """Name the next free folder for results that are set aside: earlier/1, earlier/2, ..."""
    number = 1
    while (path := folder / "earlier" / str(number)).exists():
        number += 1
    return path


def cell_key(cell: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    name = "-".join(_safe(str(v)) for v in cell.values())[:80]
    return f"{name}-{short_hash([cell, settings])}"


def short_hash(settings: Any, digits: int = 10) -> str:
    """Hash settings: equal settings give equal hashes, whatever the order of their names."""
    identity = json.dumps(plain(settings), sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:digits]


def record_path(folder: str | Path, key: str, *, packed: bool) -> Path:
    suffix = PACKED if packed else ".json"
    return Path(folder) / f"{key}{suffix}"


def write_record(folder: str | Path, record: Record, *, packed: bool = False) -> Path:
    path = record_path(folder, record.key, packed=packed)
    absent = (*OF_AUDITS, *OF_SUITE)
    data = {name: value for name, value in asdict(record).items() if value is not None or name not in absent}
    if packed and (per_round := steps_per_round(record)):
        data["steps"] = per_round  # one number tells them all
    write_sealed(path, FORMAT, data)
    return path


def steps_per_round(record: Record) -> int:
    """Return the steps of a round, if all images have as many in every round; else 0."""
    if not record.rounds:
        return 0
    per_round = record.steps[0] // max(1, record.rounds[0])
    return per_round if record.steps == [per_round * rounds for rounds in record.rounds] else 0


def read_record(path: str | Path, images: int = 0) -> Record:
    """Read a record; one that was changed, or that lies under the name of another cell, is an InputError.

    A record that is known to be of so many images may have more bytes than other files.
    """
    most = max(RECORD_BYTES.value, min(images, IMAGES.value) * BYTES_OF_IMAGE)
    record = record_from(read_sealed(path, FORMAT, "a record", most), str(path))
    if Path(path).name.removesuffix(".gz").removesuffix(".json") != record.key:
        raise InputError(f"{path} is the record of another cell, {record.key}.")
    return record


def record_from(data: Mapping[str, Any], where: str) -> Record:
    """Make a record of what a file holds, checked; `where` names the file in the error."""
    columns: dict[str, Any] = {**dict.fromkeys((*OF_AUDITS, *OF_SUITE)), **data}
    expected = {f.name for f in fields(Record)}
    if set(columns) != expected:
        odd = ", ".join(sorted(set(columns) ^ expected))
        raise InputError(f"{where} is a record with parts missing or unknown: {odd}.")
    if is_whole(columns["steps"]) and COLUMNS["rounds"].holds(columns["rounds"]):
        columns["steps"] = [columns["steps"] * rounds for rounds in columns["rounds"]]
    if problem := problem_of(columns):
        raise InputError(f"{where} is not a record that can be used: {problem}.")
    return Record(**columns)


def read_records(folder: str | Path) -> list[Record]:
    """Read all records of a folder, packed or not, in the order of their names.

    Args:
        folder: A folder of records, such as `audit/cells`.

    Returns:
        The records.

    Examples:
        >>> import recollect
        >>> from recollect.records import read_records
        >>> _ = recollect.audit(
        ...     lambda x: x * 0, train="photos?count=4&size=8", masks="half", methods="iterate", out="audit"
        ... )
        >>> len(read_records("audit/cells"))
        1
    """
    paths = [path for path in Path(folder).glob("*.json*") if path.name.endswith((".json", PACKED))]
    return [read_record(path) for path in sorted(paths)]


def write_sealed(path: str | Path, file_format: str, data: Mapping[str, Any]) -> None:
    """Write JSON with a checksum as its last line, so that `read_sealed` notices any change."""
    write_json(path, sealed(file_format, data))


def sealed(file_format: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data as JSON values, between the name of its format and a checksum over both."""
    content = {"format": file_format, **plain(data)}
    return {**content, "checksum": _checksum(content)}


def read_sealed(path: str | Path, file_format: str, kind: str, most: int | None = None) -> dict[str, Any]:
    """Read what `write_sealed` wrote; refuse a file of another kind or version, or one that was changed since."""
    return unsealed(read_json(path, most), file_format, kind, str(path))


def unsealed(content: Any, file_format: str, kind: str, where: str) -> dict[str, Any]:
    """Return the data that `sealed` was given; refuse another kind or version, or what was changed since."""
    if not isinstance(content, dict) or content.get("format") != file_format:
        raise InputError(f"{where} is not {kind} that this version of recollect can read.")
    data = dict(content)
    checksum = data.pop("checksum", None)
    if checksum != _checksum(data):
        raise InputError(f"{where} was changed or damaged after it was written: its checksum does not fit.")
    del data["format"]
    return data


def _checksum(content: Mapping[str, Any]) -> str:
    """Hash the values of a JSON file, however it is laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_json(path: str | Path, data: Any) -> None:
    """Write JSON for people to read, or packed where the name ends in .gz; equal data makes equal files."""
    if Path(path).suffix == ".gz":
        text = json.dumps(plain(data), separators=(",", ":"), allow_nan=False)
        content = gzip.compress(f"{text}\n".encode(), mtime=0)
    else:
        text = json.dumps(plain(data), indent=1, allow_nan=False)
        content = f"{text}\n".encode()
    with atomically(Path(path)) as file:
        file.write_bytes(content)


def read_json(path: str | Path, most: int | None = None, *, infinite: bool = False) -> Any:
    """Read a JSON file within limits, or of so many bytes; one that is damaged, too large or deep is an InputError."""
    return parse_json(read_text(path, most), str(path), infinite=infinite)


def parse_json(text: bytes, where: str, *, infinite: bool = False) -> Any:
    """Parse JSON within limits; `where` names its file in an error. Infinity is no number unless it is allowed."""
    parts = text.count(b"[") + text.count(b"{")
    RECORD_PARTS.check(parts, f"{where} is JSON with {parts:,} lists and objects.")
    try:
        content = json.loads(text, parse_constant=_infinity if infinite else _refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} cannot be read as JSON: {error}") from None
    if parts > DEEPEST_RECORD and _is_deep(content):
        raise InputError(f"{where} is JSON that is nested more than {DEEPEST_RECORD} deep.")
    return content


def read_text(path: str | Path, most: int | None = None) -> bytes:
    """Read a file of JSON, unpacked, without spending memory on more than the limit."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file.")
    most = RECORD_BYTES.value if most is None else most
    opener = gzip.open if path.suffix == ".gz" else Path.open
    try:
        with opener(path, "rb") as file:
            text = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None
    if len(text) > most:
        raise InputError(f"{path} is JSON of more than {most:,} bytes. {RECORD_BYTES.hint}")
    return text


def _parts(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    if isinstance(outer, dict):
        return outer.values()
    return outer


def _is_deep(content: Any) -> bool:
    level = [content]
    for _ in range(DEEPEST_RECORD):
        level = [part for outer in level for part in _parts(outer) if isinstance(part, (dict, list))]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _infinity(name: str) -> float:
    return _refuse_constant(name) if name == "NaN" else float(name)


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays to a file; return its SHA-256."""
    packed = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(packed, **named)
    with atomically(path) as file:
        file.write_bytes(packed.getvalue())
    return hashlib.sha256(packed.getvalue()).hexdigest()


def load_arrays(path: Path, expected_hash: str | None = None) -> dict[str, np.ndarray]:
    """Read arrays from a file, if it still has this SHA-256: numpy is not given a file that was changed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if expected_hash is not None and hashlib.sha256(content).hexdigest() != expected_hash:
        raise InputError(f"{path} was changed or damaged after it was written.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as packed:
            return {name: packed[name] for name in packed.files}
    except Exception as error:  # zipfile and numpy refuse a damaged file with any error
        raise InputError(f"{path} cannot be read: {error}.") from None


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path` that replaces it when all is written, and vanishes otherwise."""
    check_present(path)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=UNFINISHED, dir=path.parent)
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
    """Collect what has to be known to judge or repeat a number: versions, machine, and what the caller adds."""
    import torch

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
    """Turn any setting into JSON: dataclasses as dicts, functions by name, what is not finite as null."""
    if type(value) in _ALREADY_JSON:
        return value
    if type(value) is float:  # most values of a record
        return _finite(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return _finite(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "tolist"):  # a tensor or an array
        return plain(value.tolist())
    return getattr(value, "__name__", str(value))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _cut(errors: Iterable[float]) -> list[float]:
    return [float(_FOUR_DIGITS.create_decimal(repr(error))) for error in errors]


def _rounded(column: list[float] | None, digits: int) -> list[float] | None:
    return None if column is None else [round(value, digits) for value in column]


def _safe(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._" else "_" for c in text)
