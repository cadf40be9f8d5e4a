"""Where downloaded sets are kept."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RECOLLECT_DATA"


def cache_folder(chosen: str | Path | None = None) -> Path:
    """Return the chosen folder, else the one that RECOLLECT_DATA names, else the user's own cache."""
    folder = chosen or os.environ.get(VARIABLE)
    if folder:
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "recollect"
