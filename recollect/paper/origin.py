"""Where the numbers of a record come from: the commit, the day and the machine."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from recollect.records import provenance

PACKAGE = Path(__file__).parents[1]
COMMIT = "RECOLLECT_COMMIT"  # the environment variable that names the commit where there is no repository


def origin(device: torch.device | str, **more: Any) -> dict[str, Any]:
    """Collect versions and machine, with the commit and the day."""
    return provenance(device, commit=commit(), date=datetime.now(UTC).date().isoformat(), **more)


def note_commit() -> str | None:
    """Read the commit anew: the records of a run name the one it began with, whatever is committed meanwhile."""
    commit.cache_clear()
    return commit()


@cache
def commit(folder: Path = PACKAGE) -> str | None:
    """Name the commit of the package; None outside of a repository. A changed package is marked with a plus."""
    if given := os.environ.get(COMMIT):
        return given
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return None
    return f"{head}+" if _git(folder, "status", "--porcelain", "--", ".") else head


def _git(folder: Path, *arguments: str) -> str | None:
    """Ask git; None if there is no git, or no repository that holds the folder."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
