"""Tables in Markdown, the paper's numbers beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from recollect.paper.cells import Cell, Fit
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import ACCURATE, APPROXIMATE, Rate

NETWORK_NAMES = {"fc10": "FC-10", "fc20": "FC-20", "unet": "U-Net"}
PAPERS_MASKS = "the paper, under its own three masks"
ACTIVATION_NAMES = {"lrelu": "LReLU", "prelu": "PReLU", "softplus": "Softplus"}


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def network_name(fit: Fit) -> str:
    """Name a network, and what is unusual about it or its training."""
    names = [f"{NETWORK_NAMES[fit.kind]} {ACTIVATION_NAMES[fit.activation]}"]
    if fit.skip:
        names.append("skip connections")
    if fit.plain:
        names.append("plain recipe")
    names += [f"{setting.replace('_', ' ')} {value:g}" for setting, value in fit.changes]
    return ", ".join(names)


def percent(rate: Rate, *, interval: bool = False) -> str:
    """Write a share in percent."""
    digits = _digits(rate)
    text = f"{100 * rate.value:.{digits}f}"
    if interval:
        low, high = rate.interval
        text += f" ({100 * low:.{digits}f} to {100 * high:.{digits}f})"
    return text


def pooled(rates: Iterable[Rate]) -> Rate:
    """Add up the images of several rates."""
    rates = list(rates)
    return Rate(sum(rate.count for rate in rates), sum(rate.total for rate in rates))


def pooled_count(store: Store, cells: Iterable[Cell], threshold: float) -> str:
    """Write how many images are recovered over all recorded cells, and of how many; a dash without a record."""
    rates = [record.score.rate(threshold) for cell in cells if (record := store.shown(cell))]
    return pooled(rates).of_total if rates else "-"


def by_mask(store: Store, cells: Sequence[Cell], methods: Sequence[str], threshold: float | None) -> str:
    """Make a row for each network and a column for each mask: the methods' rates (or PSNR) at the last train loss.

    Where a network was trained several times, a value is the mean over the trainings with the lowest and highest.
    """
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    last = _trainings_at_last_loss(store, cells)
    rows = []
    for fit in dict.fromkeys(cell.fit.first for cell in cells):
        groups = [[last.get((fit, mask, method), []) for method in methods] for mask in masks]
        own = [of_method for of_mask in groups for of_method in of_mask]
        if any(own):
            values = [rates_of(of_mask, threshold) for of_mask in groups]
            name = _with_trainings(network_name(fit), max(map(len, own)))
            rows.append([name, fit.optimizer, f"{_train_loss(chain.from_iterable(own)):.1e}", *values])
    rows += _generic_rows(store, cells, masks, threshold)
    return markdown(["network", "optimizer", "train loss", *masks], rows)


def both_rates_by_mask(store: Store, cells: Sequence[Cell], methods: Sequence[str]) -> str:
    """Make a table of `by_mask` for accurate recovery, and one for approximate recovery."""
    text = ""
    for name, threshold in (("Accurate", ACCURATE), ("Approximate", APPROXIMATE)):
        text += f"{name} recovery in percent, {' / '.join(methods)}:\n\n{by_mask(store, cells, methods, threshold)}\n"
    return text


def _trainings_at_last_loss(store: Store, cells: Iterable[Cell]) -> dict[tuple[Fit, str, str], list[Record]]:
    """Group the records at the last loss: all trainings of a network together."""
    groups: dict[tuple[Fit, str, str], list[Record]] = {}
    for cell in cells:
        if cell.is_at_last_loss and cell.sees_network and (record := store.shown(cell)):
            groups.setdefault((cell.fit.first, cell.mask, cell.method), []).append(record)
    return groups


def rates_of(of_mask: Iterable[Sequence[Record]], threshold: float | None) -> str:
    """Write the values of several methods under one mask, each over the trainings of its records."""
    return " / ".join(_value(of_method, threshold) for of_method in of_mask)


def _with_trainings(name: str, number: int) -> str:
    return f"{name}, {number} trainings" if number > 1 else name


def _train_loss(records: Iterable[Record]) -> float:
    """Read the train loss of the first record."""
    return float(next(iter(records)).provenance["train_loss"])


def _generic_rows(
    store: Store, cells: Sequence[Cell], masks: Sequence[str], threshold: float | None
) -> list[list[str]]:
    """Make a row for each generic method and set of images that it restored."""
    by_set: dict[str, dict[str, Record]] = {}
    for cell in cells:
        if not cell.sees_network and (record := store.shown(cell)):
            by_set.setdefault(f"none ({cell.method} on {cell.fit.images.name})", {})[cell.mask] = record
    rows = []
    for name, by_mask in by_set.items():
        row = [name, "", ""]
        for mask in masks:
            recorded = [by_mask[mask]] if mask in by_mask else []
            row.append(_value(recorded, threshold))
        rows.append(row)
    return rows


def against_paper(store: Store, cells: Sequence[Cell], paper: Mapping[str, Sequence[float]], threshold: float) -> str:
    """Make a row for each network and method and a column for each mask; the paper's rates have a table of their own.

    Its masks are not ours, so no rate of the paper stands under the name of one of our masks.
    """
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    rows = dict.fromkeys(_measured_rows(store, cells, threshold))  # all networks share the generic method's row
    ours = markdown(["network", "optimizer", "method", "train loss", *masks], rows)
    if not paper:
        return ours
    stated = [[method, ", ".join(f"{value:g}" for value in values)] for method, values in paper.items()]
    return f"{markdown(['method', PAPERS_MASKS], stated)}\nHere, under our masks:\n\n{ours}"


def _measured_rows(store: Store, cells: Sequence[Cell], threshold: float) -> Iterator[tuple[str, ...]]:
    for (fit, method), group in _by_method(cells).items():
        by_mask: dict[str, list[Record]] = {cell.mask: [] for cell in group}
        for cell in group:
            if record := store.shown(cell):
                by_mask[cell.mask].append(record)
        records = [record for own in by_mask.values() for record in own]
        if not records:
            continue
        head = ("none", "", method, "")
        if group[0].sees_network:
            name = _with_trainings(network_name(fit), max(map(len, by_mask.values())))
            head = (name, fit.optimizer, method, f"{_train_loss(records):.1e}")
        yield (*head, *(rate_of_trainings(own, threshold) for own in by_mask.values()))


def rate_of_trainings(records: Sequence[Record], threshold: float) -> str:
    """Write the rate of one training with its 95% interval; of several the mean, the lowest and the highest."""
    rates = [record.score.rate(threshold) for record in records]
    if len(rates) < 2:
        return percent(rates[0], interval=True) if rates else ""
    return _mean_and_range([100 * rate.value for rate in rates], _digits(rates[0]))


def _mean_and_range(values: Sequence[float], digits: int) -> str:
    mean = sum(values) / len(values)
    return f"{mean:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _digits(rate: Rate) -> int:
    """Write one digit if one image is less than one percent."""
    return 1 if rate.total > 100 else 0


class _Comparison(NamedTuple):
    """Images recovered in one cell, by blind and by iterating the autoencoder."""

    cell: Cell
    loss_name: str
    blind: int
    iterate: int


def compare_with_iterate(store: Store, cells: Sequence[Cell], threshold: float) -> str:
    """Say in how many cells blind recovers more images than iterating, and name those with fewer."""
    comparisons = list(_compare(store, cells, threshold))
    more = sum(one.blind > one.iterate for one in comparisons)
    none = sum(one.blind == one.iterate == 0 for one in comparisons)
    equal = sum(one.blind == one.iterate for one in comparisons)
    fewer = [one for one in comparisons if one.blind < one.iterate]
    text = f"Blind recovers more images than iterating in {more} of {len(comparisons)} cells, as many in {equal}"
    if none:
        text += f" ({none} of them none)"
    text += f", fewer in {len(fewer)}"
    if fewer:
        text += ": " + ", ".join(f"{one.cell.fit.name} {one.loss_name} {one.cell.mask}" for one in fewer)
    return text + ".\n"


def _compare(store: Store, cells: Sequence[Cell], threshold: float) -> Iterator[_Comparison]:
    own = [cell for cell in cells if cell.set == "train" and cell.gamma is None]
    rivals = {(cell.fit, cell.loss, cell.mask): cell for cell in own if cell.method == "iterate"}
    for cell in own:
        if cell.method != "blind":
            continue
        blind, iterate = store.shown(cell), store.shown(rivals[cell.fit, cell.loss, cell.mask])
        if blind and iterate:
            loss_name = str(blind.cell["loss"])
            yield _Comparison(cell, loss_name, blind.score.rate(threshold).count, iterate.score.rate(threshold).count)


def _value(records: Sequence[Record], threshold: float | None) -> str:
    """Write the rate or the mean PSNR of one training, or its mean and range over several."""
    if not records:
        return "-"
    if threshold is None:
        values, digits = [record.score.mean_psnr for record in records], 0
    else:
        rates = [record.score.rate(threshold) for record in records]
        values, digits = [100 * rate.value for rate in rates], _digits(rates[0])
    return f"{values[0]:.{digits}f}" if len(values) == 1 else _mean_and_range(values, digits)


def _by_method(cells: Sequence[Cell]) -> dict[tuple[Fit, str], list[Cell]]:
    groups: dict[tuple[Fit, str], list[Cell]] = {}
    for cell in cells:
        name = cell.method_name
        if cell.set != "train":
            name += ", unseen images"
        groups.setdefault((cell.fit.first, name), []).append(cell)
    return groups
