"""What an experiment of the paper is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.paper.cells import Cell, Fit
from recollect.paper.fit import Bench
from recollect.paper.scales import Scale
from recollect.paper.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arrays = Mapping[str, np.ndarray]


def _no_cells(_scale: Scale) -> Sequence[Cell]:
    return ()


def _no_fits(_scale: Scale) -> Sequence[Fit]:
    return ()


def _no_figures(_scale: Scale, _results: Results) -> dict[str, Figure]:
    return {}


@dataclass(frozen=True)
class Pictures:
    """Images to look at: what is computed from a training's images and weights, and how it is drawn."""

    fit: Callable[[Scale], Fit]
    take: Callable[[Bench, Scale, Fit], Arrays]
    draw: Callable[[Arrays], Figure]
    needs_weights: bool = True
    needs_prior: bool = False  # a diffusion model, so diffusers


@dataclass(frozen=True)
class Experiment:
    """One figure or table: what the paper shows and where, the cells that it takes, how it is drawn."""

    id: str
    shows: str
    where: str
    cells: Callable[[Scale], Sequence[Cell]] = _no_cells
    trainings: Callable[[Scale], Sequence[Fit]] = _no_fits  # beyond those of the cells
    pictures: Pictures | None = None
    facts: Callable[[Bench, Scale], dict[str, Any]] | None = None  # what is neither a cell nor a picture
    figures: Callable[[Scale, Results], dict[str, Figure]] = _no_figures
    table: Callable[[Scale, Results], str] | None = None

    def fits(self, scale: Scale) -> list[Fit]:
        """Every training it needs, each once, in order."""
        shown = [self.pictures.fit(scale)] if self.pictures and self.pictures.needs_weights else []
        return list(dict.fromkeys([*(cell.fit for cell in self.cells(scale)), *self.trainings(scale), *shown]))
