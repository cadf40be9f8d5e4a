"""How much packed images may unpack to."""

from __future__ import annotations

from pathlib import Path

from recollect.files.limits import PACKED, SET_GROWTH


def check_unpacked(unpacked: int, path: Path) -> None:
    """Refuse an array that is far larger than the file that it is packed in."""
    packed = path.stat().st_size
    SET_GROWTH.check(unpacked - PACKED * packed, f"{path} has {packed:,} bytes and unpacks to {unpacked:,}.")
