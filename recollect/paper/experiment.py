"""What an experiment of the paper is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recollect.paper.plan import Cell, Fit
from recollect.paper.scales import Scale


def _nothing(_scale: Scale) -> Sequence[Cell]:
    return ()


@dataclass(frozen=True)
class Experiment:
    """One figure or table: what the paper shows and where, and the cells that it takes."""

    id: str
    shows: str
    where: str
    cells: Callable[[Scale], Sequence[Cell]] = _nothing
    trainings: Callable[[Scale], Sequence[Fit]] | None = None  # beyond those of the cells

    def fits(self, scale: Scale) -> list[Fit]:
        """Every training it needs, each once, in order."""
        more = self.trainings(scale) if self.trainings else ()
        return list(dict.fromkeys([*(cell.fit for cell in self.cells(scale)), *more]))
