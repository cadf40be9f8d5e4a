"""What an experiment of the paper is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.paper.cells import Cell, Fit
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arrays = Mapping[str, np.ndarray]
BEYOND = "not in the paper"  # where an experiment of our own is


def _no_cells(_scale: Scale) -> Sequence[Cell]:
    return ()


def _no_fits(_scale: Scale) -> Sequence[Fit]:
    return ()


def _no_figures(_scale: Scale, _store: Store) -> dict[str, Figure]:
    return {}


@dataclass(frozen=True)
class Pictures:
    """A figure of images: which training it shows, how its arrays are computed, how they are drawn."""

    fit: Callable[[Scale], Fit]
    compute: Callable[[Workspace, Scale, Fit], Arrays]
    draw: Callable[[Arrays], Figure]
    needs_weights: bool = True
    needs_prior: bool = False  # a diffusion model, which needs diffusers


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper: the cells it needs and how it is drawn."""

    name: str
    summary: str  # what the figure or table shows
    location: str  # in the paper, for example "Figure 3"
    cells: Callable[[Scale], Sequence[Cell]] = _no_cells
    trainings: Callable[[Scale], Sequence[Fit]] = _no_fits  # beyond those of the cells
    pictures: Pictures | None = None
    facts: Callable[[Workspace, Scale], dict[str, Any]] | None = None  # results that are neither cells nor pictures
    figures: Callable[[Scale, Store], dict[str, Figure]] = _no_figures
    table: Callable[[Scale, Store], str] | None = None
    order: int = 100  # experiments are listed and computed in this order

    @property
    def is_of_paper(self) -> bool:
        """Whether the paper has this figure or table, or the text it belongs to."""
        return self.location != BEYOND

    def fits(self, scale: Scale) -> list[Fit]:
        """List every training that the experiment needs, each once."""
        fits = [cell.fit for cell in self.cells(scale)]
        fits += self.trainings(scale)
        if self.pictures and self.pictures.needs_weights:
            fits.append(self.pictures.fit(scale))
        return list(dict.fromkeys(fits))
