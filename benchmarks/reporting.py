"""What the benchmarks share: one sentence for a mistake, result files, tables in Markdown."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect import InputError
from recollect.records import read_json


@contextmanager
def input_errors_end_it() -> Iterator[None]:
    """End the benchmark with one sentence after a user's mistake."""
    try:
        yield
    except InputError as error:
        raise SystemExit(str(error)) from None


def read_result(path: Path, *parts: str) -> dict[str, Any]:
    """Read what a benchmark wrote, and check that it has these parts."""
    result = read_json(path)
    if not isinstance(result, dict) or not all(part in result for part in ("versions", "device", *parts)):
        raise InputError(f"{path} was not written by this benchmark.")
    return result


def check_writable(*paths: Path | None) -> None:
    """Refuse paths that cannot be written, before anything is measured."""
    for path in (path for path in paths if path is not None):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
        if path.is_dir():
            raise InputError(f"{path} cannot be written: it is a folder.")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
