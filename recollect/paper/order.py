"""The order of a run: the paper's own cells at one seed first, then in parts what goes beyond them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import Experiment
from recollect.paper.experiments.perfect_fit import is_usual
from recollect.paper.scales import MODERATE, Scale

OWN, MORE, OTHER, BEYOND, SEEDS = PARTS = (
    "the paper's own cells at one seed",
    "more cells of the same networks",
    "the same networks with other optimizers, Table 2 with other activations",
    "networks that the paper does not have",
    "further trainings from other seeds",
)
PAPERS_METHODS = ("iterate", "blind", "known", "ddnm")
USUAL_SETS = ("train", "control")
TABLES = (("fc20", "lrelu", "muon"), ("unet", "softplus", "muon"))  # of the paper, on many images
Work = dict[Fit, list[Cell]]


def in_parts(work: Work, experiments: Iterable[Experiment], scale: Scale) -> dict[str, Work]:
    """Divide trainings and their cells among the parts of a run; parts without work are left out."""
    parts: dict[str, Work] = {part: {} for part in PARTS}
    of_paper = {fit for one in experiments if one.is_of_paper for fit in one.fits(scale)}
    for fit in sorted(work, key=lambda fit: fit.seed):
        for part, cells in _divide(_part_of(fit, of_paper), work[fit]).items():
            parts[part][fit] = cells
    return {part: own for part, own in parts.items() if own}


def _divide(part: str, cells: list[Cell]) -> dict[str, list[Cell]]:
    """Divide the cells of a network of the paper in its own and more; a training without cells is its own."""
    own = [cell for cell in cells if is_of_paper(cell)]
    if part != OWN or len(own) == len(cells):
        return {part: cells}
    more = {MORE: [cell for cell in cells if not is_of_paper(cell)]}
    return {OWN: own} | more if own else more


def one_by_one(parts: Mapping[str, Work]) -> list[Work]:
    """List the work of all parts so that a network of the paper is done with before the next one is trained.

    Its weights are then needed no more, so a machine that loses them costs one training at most.
    """
    own, more = parts.get(OWN, {}), parts.get(MORE, {})
    of_paper = [{fit: cells[fit]} for fit in {**own, **more} for cells in (own, more) if fit in cells]
    return of_paper + [work for part, work in parts.items() if part not in (OWN, MORE)]


def weights_needed(experiments: Iterable[Experiment], scale: Scale) -> dict[Fit, set[float]]:
    """Collect for each training the losses whose weights some cell needs, and the last one, which pictures need."""
    needed: dict[Fit, set[float]] = {}
    for experiment in experiments:
        for fit in experiment.fits(scale):
            needed.setdefault(fit, {fit.milestones[-1]})
        for cell in experiment.cells(scale):
            if cell.sees_network and cell.loss is not None:
                needed[cell.fit].add(cell.loss)
    return needed


def is_of_paper(cell: Cell) -> bool:
    """Return whether the paper has this cell: its methods, with its gamma, on the usual images."""
    return cell.method in PAPERS_METHODS and cell.gamma is None and cell.attacked is None and cell.set in USUAL_SETS


def _part_of(fit: Fit, of_paper: Collection[Fit]) -> str:
    if fit != fit.first:
        return SEEDS
    if fit not in of_paper:
        return BEYOND
    return OWN if _is_papers_own(fit) else OTHER


def _is_papers_own(fit: Fit) -> bool:
    """Return whether a network has its usual optimizer; of many images, whether a table of the paper shows it."""
    if fit.milestones == MODERATE:
        return (fit.kind, fit.activation, fit.optimizer) in TABLES
    return is_usual(fit)
