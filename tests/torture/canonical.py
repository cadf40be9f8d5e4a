"""A folder of results as plain values, less dates and durations: two equal runs give equal values."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from recollect.records import read_sealed, unsealed

CLOCKS = {"seconds", "started"}  # the names of durations and dates
CURVE = "history"  # rows of a loss curve, which begin with seconds
SUMS = "SHA256SUMS"  # of files that have clocks in them: they are checked, and their names compared
SEAL = "checksum"  # computed over what has clocks in it: it is checked, and not compared
LOG = "log"  # lines of text
# Lines of a log that tell of an interruption, or repeat what the name of a checkpoint tells.
OF_INTERRUPTIONS = ("] resumed", " interrupted after ", "] reached ")
DURATION = re.compile(r"\b\d+(\.\d+)?(e[-+]\d+)? (s|ms|min|h)\b")
DATE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(\+[\d:]+|Z)?")


def canonical(folder: Path) -> dict[str, Any]:
    """Read every result; charts count by their names alone."""
    return {
        str(path.relative_to(folder)): _content(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _is_passing(path.relative_to(folder))
    }


def difference(made: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Name the first file that is missing or differs."""
    for name, content in expected.items():
        if name not in made:
            return f"{name} is missing"
        if made[name] != content:
            return f"{name} differs{_where(made[name], content)}"
    return None


def leftovers(folder: Path) -> list[str]:
    """List temporary files of runs that were killed, and locks that were not released."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*") if path.is_file())


def _where(made: Any, expected: Any) -> str:
    """Name the first part that differs."""
    if not isinstance(made, dict) or not isinstance(expected, dict):
        return ""
    names = [name for name in sorted({*made, *expected}) if made.get(name) != expected.get(name)]
    return f": {names[0]}" + _where(made.get(names[0]), expected.get(names[0]))


def _is_passing(path: Path) -> bool:
    """Whether a file is no result: a temporary one, a lock, or one that was put aside."""
    return path.name.startswith(".") or "earlier" in path.parts


def _content(path: Path) -> Any:
    readers: dict[str, Callable[[Path], Any]] = {
        ".json": _json, ".gz": _json, ".jsonl": _lines, ".npz": _arrays, ".safetensors": _tensors, ".csv": _table,
        ".txt": _text, ".html": _text, ".npy": _array, ".png": _bytes, ".svg": lambda _: "exists",  # drawn over seconds
    }  # fmt: skip
    try:
        return _sums(path) if path.name == SUMS else readers[path.suffix](path)
    except Exception as error:  # it was edited, and nobody wrote it anew
        return f"unreadable: {error}"


def _json(path: Path) -> Any:
    content = path.read_bytes()
    data = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    if isinstance(data, dict) and SEAL in data:
        data = read_sealed(path, data["format"], "a file with a checksum")
    return _less_clocks(data)


def _lines(path: Path) -> Any:
    contents = [json.loads(line) for line in path.read_text().splitlines()]
    return [_less_clocks(unsealed(content, content["format"], "a line", str(path))) for content in contents]


def _less_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        special: dict[str, Callable[[Any], Any]] = {CURVE: _curve, LOG: _log}
        parts = {name: part for name, part in value.items() if name not in CLOCKS}
        return {name: special.get(name, _less_clocks)(part) for name, part in parts.items()}
    if isinstance(value, list):
        return [_less_clocks(part) for part in value]
    return _timeless(value) if isinstance(value, str) else value


def _curve(rows: list[list[float]]) -> list[list[float]]:
    return [row[1:] for row in rows]


def _log(lines: list[str]) -> list[str]:
    """Keep every line once: a finished run that is run again says once more how it ended."""
    kept = [_timeless(line) for line in lines if not any(note in line for note in OF_INTERRUPTIONS)]
    return list(dict.fromkeys(kept))


def _timeless(text: str) -> str:
    return DURATION.sub("some time", DATE.sub("some date", text))


def _text(path: Path) -> list[str]:
    return _log(path.read_text(encoding="utf-8").splitlines())


def _bytes(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _array(path: Path) -> str:
    return _digest(np.load(path, allow_pickle=False))


def _sums(path: Path) -> list[str]:
    """List the files of an audit, each with whether its sum is right."""
    lines = [line.split("  ", 1) for line in path.read_text().splitlines()]
    return [f"{name}: {_bytes(path.parent / name) == expected}" for expected, name in lines]


def _arrays(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: _digest(arrays[name]) for name in sorted(arrays.files)}


def _tensors(path: Path) -> Any:
    with safe_open(path, framework="numpy") as tensors:
        facts = {name: text for name, text in (tensors.metadata() or {}).items() if name != SEAL}
        written = {name: _less_clocks(_parsed(text)) for name, text in facts.items()}
        return written | {name: _digest(tensors.get_tensor(name)) for name in sorted(tensors.keys())}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _table(path: Path) -> Any:
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if name not in CLOCKS} for row in csv.DictReader(file)]


def _digest(values: np.ndarray) -> str:
    content = np.ascontiguousarray(values).tobytes()
    return f"{values.dtype}{values.shape}{hashlib.sha256(content).hexdigest()}"
