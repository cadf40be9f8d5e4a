"""Where a run spends its time, as rows of a record."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LINES = 30


def slowest(profile: cProfile.Profile, folders: Sequence[Path]) -> list[dict[str, Any]]:
    """List the functions of these folders that took longest, with all that they called."""
    stats: Mapping[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rows = [
        {"function": f"{name_in(file, folders)}:{function}", "calls": calls, "seconds": seconds}
        for (file, _, function), (calls, _, _, seconds, _) in stats.items()
        if name_in(file, folders)
    ]
    return sorted(rows, key=lambda row: -row["seconds"])[:LINES]


def name_in(file: str, folders: Sequence[Path]) -> str | None:
    """Name a file by its path in the first of the folders that holds it."""
    inside = [folder for folder in folders if Path(file).is_relative_to(folder)]
    return Path(file).relative_to(inside[0]).as_posix() if inside else None
