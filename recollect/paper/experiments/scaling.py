"""Not in the paper: how the recoverable share depends on the number of images, the width, the loss and the seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.paper.cells import Cell, Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.experiments.perfect_fit import with_references
from recollect.paper.render.panels import Point, share_of_all
from recollect.paper.render.tables import markdown, pooled_count
from recollect.paper.scales import Scale
from recollect.paper.store import Store
from recollect.scoring import APPROXIMATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recollect.paper.render.draw import Series

METHOD = "blind"
Share = tuple[float, float, float]  # mean over trainings, lowest, highest, in percent


def by_number(scale: Scale) -> list[Fit]:
    """List the trainings of the usual width, on sets that grow."""
    return [scale.growth(images) for images in scale.growing]


def by_width(scale: Scale) -> list[Fit]:
    """List the trainings of other widths, on the middle set."""
    return [scale.growth(scale.middle, ("width", width)) for width in scale.widths]


def networks(scale: Scale) -> list[Fit]:
    return [*by_number(scale), *by_width(scale)]


def cells(scale: Scale) -> list[Cell]:
    return [
        cell
        for fit in networks(scale)
        for cell in (*_train_cells(scale, fit), *_unseen_cells(scale, fit), *_reference_cells(scale, fit))
    ]


def _trainings(scale: Scale, fit: Fit) -> list[Fit]:
    return [fit, *scale.repeats(fit)]


def _train_cells(scale: Scale, fit: Fit) -> list[Cell]:
    """List the cells of all trainings of one network."""
    return [
        Cell(training, loss, "train", mask, METHOD)
        for training in _trainings(scale, fit)
        for loss in training.milestones
        for mask in scale.table_masks
    ]


def _unseen_cells(scale: Scale, fit: Fit) -> list[Cell]:
    return [
        Cell(training, training.milestones[-1], "control", mask, METHOD)
        for training in _trainings(scale, fit)
        for mask in scale.table_masks
    ]


def _reference_cells(scale: Scale, fit: Fit) -> list[Cell]:
    """List what else recovers the images at the last loss: the zero rule, and methods that see no network."""
    references = with_references(fit, ())
    return [Cell(fit, fit.milestones[-1], "train", mask, name) for name in references for mask in scale.table_masks]


def _references(scale: Scale) -> list[str]:
    """Name the references; the sets have the same."""
    return list(dict.fromkeys(cell.method for cell in _reference_cells(scale, scale.growth(scale.middle))))


def figures(scale: Scale, store: Store) -> dict[str, Figure]:
    """Draw the share against the number of images and against the width, a line for each loss that is drawn."""
    from recollect.paper.render.draw import PERCENT, loss_styles, method_styles, series_figure

    middle = scale.growth(scale.middle)
    panels = [
        _panel(scale, store, f"number of images, at a width of {_width(middle)}", _by_number(scale)),
        _panel(scale, store, f"width, with {scale.middle.count} images", _by_width_and_usual(scale)),
    ]
    references = {name: replace(style, label=name) for name, style in method_styles().items()}
    styles = {**loss_styles(drawn_losses(middle)), **references}
    return {"scaling": series_figure(panels, styles, PERCENT, f"Training images recovered by {METHOD}")}


def drawn_losses(fit: Fit) -> list[float]:
    """Choose the losses that have a line: the first three and the last, between which the share hardly changes."""
    return list(dict.fromkeys([*fit.milestones[:3], fit.milestones[-1]]))


def _by_number(scale: Scale) -> dict[Fit, float]:
    return {fit: float(fit.images.count) for fit in by_number(scale)}


def _by_width_and_usual(scale: Scale) -> dict[Fit, float]:
    """Return the widths of the networks on the middle set, with the usual one."""
    fits = [scale.growth(scale.middle), *by_width(scale)]
    return {fit: float(_width(fit)) for fit in sorted(fits, key=_width)}


def _width(fit: Fit) -> int:
    assert isinstance(fit.width, int)
    return int(dict(fit.changes).get("width", fit.width))


def _panel(scale: Scale, store: Store, title: str, sizes: Mapping[Fit, float]) -> Series:
    from recollect.paper.render.draw import Axis, Series, short

    lines = {short(loss): _line(scale, store, sizes, loss) for loss in drawn_losses(next(iter(sizes)))}
    for name in _references(scale):
        lines[name] = _reference_line(scale, store, sizes, name)
    x = Axis("", (min(sizes.values()) / 1.15, max(sizes.values()) * 1.15), log=True, ticks=tuple(sizes.values()))
    return Series(title, x, {name: own for name, own in lines.items() if own})


def _line(scale: Scale, store: Store, sizes: Mapping[Fit, float], loss: float) -> list[Point]:
    """Make a point for each network with records: the mean share over masks and trainings, and the range."""
    shares = {size: _share(scale, store, fit, loss) for fit, size in sizes.items()}
    return [Point(size, *share) for size, share in shares.items() if share]


def _reference_line(scale: Scale, store: Store, sizes: Mapping[Fit, float], name: str) -> list[Point]:
    shares = {size: _reference(scale, store, fit, name) for fit, size in sizes.items()}
    return [Point(size, share, share, share) for size, share in shares.items() if share is not None]


def _share(scale: Scale, store: Store, fit: Fit, loss: float) -> Share | None:
    """Measure the mean, lowest and highest share over the trainings; None if nothing is recorded."""
    own = [cell for cell in _train_cells(scale, fit) if cell.loss == loss]
    of_trainings = [share_of_all(store, training, APPROXIMATE, or_best=False) for training in _by_training(own)]
    shares = [share for share in of_trainings if share is not None]
    return (sum(shares) / len(shares), min(shares), max(shares)) if shares else None


def _reference(scale: Scale, store: Store, fit: Fit, name: str) -> float | None:
    return share_of_all(store, [cell for cell in _reference_cells(scale, fit) if cell.method == name], APPROXIMATE)


def _by_training(cells: Iterable[Cell]) -> list[Sequence[Cell]]:
    groups: dict[Fit, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.fit, []).append(cell)
    return list(groups.values())


def table(scale: Scale, store: Store) -> str:
    losses = scale.growth(scale.middle).milestones
    rows = [row for fit in networks(scale) if (row := _row(scale, store, fit))]
    titles = ["images", "width", *(f"{loss:.0e}" for loss in losses), *_references(scale), "unseen images"]
    masks = ", ".join(scale.table_masks)
    return (
        f"Approximate recovery by {METHOD} in percent at each train loss, mean over the masks {masks} and over "
        "trainings (lowest to highest training). At the last loss: the references, and how many unseen images "
        f"{METHOD} recovers, over all masks and trainings.\n\n{markdown(titles, rows)}"
    )


def _row(scale: Scale, store: Store, fit: Fit) -> list[str]:
    """Make the row of one network; nothing if none of its losses is recorded."""
    shares = [_share(scale, store, fit, loss) for loss in fit.milestones]
    if not any(shares):
        return []
    values = []
    for share in shares:
        values.append(f"{share[0]:.0f} ({share[1]:.0f} to {share[2]:.0f})" if share else "-")
    for name in _references(scale):
        reference = _reference(scale, store, fit, name)
        values.append("-" if reference is None else f"{reference:.0f}")
    return [
        str(fit.images.count),
        str(_width(fit)),
        *values,
        pooled_count(store, _unseen_cells(scale, fit), APPROXIMATE),
    ]


EXPERIMENT = Experiment(
    name="scaling",
    summary="recovery against the number of images, the width, the train loss and the seed, FC-10 LReLU",
    location=BEYOND,
    cells=cells,
    figures=figures,
    table=table,
    order=30,
)
