"""Not in the paper: how the recoverable share depends on the number of images, the width, the loss and the seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.render.panels import Point, share_of_all
from recollect.paper.render.tables import markdown
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHOD = "blind"


def by_number(scale: Scale) -> list[Fit]:
    """List the trainings of the usual width, on sets that grow."""
    return [scale.growth(images) for images in scale.growing]


def by_width(scale: Scale) -> list[Fit]:
    """List the trainings of other widths, on the largest set but one."""
    return [scale.growth(scale.growing[-2], ("width", width)) for width in scale.widths]


def cells(scale: Scale) -> list[Cell]:
    return [cell for fit in (*by_number(scale), *by_width(scale)) for cell in _cells_of(scale, fit)]


def _cells_of(scale: Scale, fit: Fit) -> list[Cell]:
    """List the cells of all trainings of one network."""
    return [
        Cell(training, loss, "train", mask, METHOD)
        for training in (fit, *scale.repeats(fit))
        for loss in training.milestones
        for mask in scale.table_masks
    ]


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw the share against the number of images and against the width, a line for each loss."""
    from recollect.paper.render.draw import PERCENT, Axis, Series, series_figure

    numbers = {fit: float(fit.images.count) for fit in by_number(scale)}
    widths = {fit: float(dict(fit.changes)["width"]) for fit in by_width(scale)}
    usual = by_number(scale)[-2]
    assert isinstance(usual.width, int)
    widths[usual] = float(usual.width)
    panels = []
    for title, sizes in (("images", numbers), ("width of the network", widths)):
        limits = (min(sizes.values()) / 1.3, max(sizes.values()) * 1.3)
        lines = {f"loss {loss:.0e}": _line(scale, store, sizes, loss) for loss in usual.milestones}
        panels.append(Series(title, Axis(title, limits, log=True), {name: own for name, own in lines.items() if own}))
    return {"scaling": series_figure(panels, PERCENT)}


def _line(scale: Scale, store: Store, sizes: dict[Fit, float], loss: float) -> list[Point]:
    """Make a point for each network with records: the mean share over masks and trainings, and the range."""
    points = []
    for fit, size in sorted(sizes.items(), key=lambda pair: pair[1]):
        if share := _share(scale, store, fit, loss):
            points.append(Point(size, *share))
    return points


def _share(scale: Scale, store: Store, fit: Fit, loss: float) -> tuple[float, float, float] | None:
    """Measure the mean, lowest and highest share over the trainings; None if nothing is recorded."""
    own = [cell for cell in _cells_of(scale, fit) if cell.loss == loss]
    of_trainings = [share_of_all(store, training, APPROXIMATE, or_best=False) for training in _by_training(own)]
    shares = [share for share in of_trainings if share is not None]
    return (sum(shares) / len(shares), min(shares), max(shares)) if shares else None


def _by_training(cells: Iterable[Cell]) -> list[Sequence[Cell]]:
    groups: dict[Fit, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.fit, []).append(cell)
    return list(groups.values())


def table(scale: Scale, store: Store) -> str:
    fits = [*by_number(scale), *by_width(scale)]
    losses = fits[0].milestones
    rows = []
    for fit in fits:
        shares = [_share(scale, store, fit, loss) for loss in losses]
        if any(shares):
            width = dict(fit.changes).get("width", fit.width)
            values = [f"{share[0]:.0f} ({share[1]:.0f} to {share[2]:.0f})" if share else "-" for share in shares]
            rows.append([str(fit.images.count), str(width), *values])
    titles = ["images", "width", *(f"{loss:.0e}" for loss in losses)]
    masks = ", ".join(scale.table_masks)
    return (
        f"Approximate recovery by {METHOD} in percent, mean over the masks {masks} and over trainings (lowest to "
        f"highest training), at each train loss:\n\n{markdown(titles, rows)}"
    )


EXPERIMENT = Experiment(
    name="scaling",
    summary="recovery against the number of images, the width, the train loss and the seed, FC-10 LReLU",
    location=BEYOND,
    cells=cells,
    figures=figures,
    table=table,
    order=30,
)
