"""How an audit reports its progress."""

from __future__ import annotations

from collections.abc import Callable

AuditProgress = Callable[[str, float, float], None]  # what is being done, how far, of how much


def no_progress(_doing: str, _done: float, _total: float) -> None:
    """Report nothing."""
