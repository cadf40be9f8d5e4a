"""What one trial showed, and what every child is held to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.torture.children import Ended


@dataclass(frozen=True)
class Outcome:
    """One trial of a scenario. A problem is a failure of recollect, in one line."""

    scenario: str
    subject: str  # the command, format or fault
    problem: str | None = None
    kills: int = 0
    refused: bool = False  # it ended in a sentence
    seconds: float = 0.0  # of CPU time
    megabytes: float = 0.0
    evidence: Path | None = None  # a folder to keep if there is a problem


def complaint(ended: Ended, allowed: tuple[int, ...]) -> str | None:
    """Say what a user should never meet: a hang, a traceback, a crash, an exit code without its sentence."""
    if ended.hung:
        return "hung"
    if ended.has_traceback:
        return f"traceback: {_last_line(ended)}"
    if ended.code < 0:
        return f"ended by signal {-ended.code}"
    if ended.code not in allowed:
        return f"exit code {ended.code}: {_last_line(ended)}"
    if ended.code not in (0, 1) and not ended.sentences:
        return f"exit code {ended.code} without a sentence"
    return None


def _last_line(ended: Ended) -> str:
    lines = (ended.err or ended.out).strip().splitlines()
    return lines[-1][:200] if lines else "nothing was printed"
