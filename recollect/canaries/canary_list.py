"""Where the sealed list of a folder of canaries is; it is found without torch."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import InputError

LIST = "canaries.json"


def list_of(folder: str | Path) -> Path:
    """Return the path of the list; refuse a folder that has none."""
    path = Path(folder) / LIST
    if not path.is_file():
        raise InputError(f"{folder} holds no canaries: there is no file {path}, which recollect canaries make writes.")
    return path
