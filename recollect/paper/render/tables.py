"""Tables in Markdown, the paper's numbers beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recollect.paper.cells import Cell, Fit
from recollect.paper.store import Store
from recollect.records import Record
from recollect.scoring import Rate

NETWORK_NAMES = {"fc10": "FC-10", "fc20": "FC-20", "unet": "U-Net"}
ACTIVATION_NAMES = {"lrelu": "LReLU", "prelu": "PReLU", "softplus": "Softplus"}


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def network_name(fit: Fit) -> str:
    return f"{NETWORK_NAMES[fit.kind]} {ACTIVATION_NAMES[fit.activation]}"


def percent(rate: Rate, *, interval: bool = False) -> str:
    """Write a share in percent, with one digit if one image is less than one percent."""
    digits = 1 if rate.total > 100 else 0
    text = f"{100 * rate.value:.{digits}f}"
    if interval:
        low, high = rate.interval
        text += f" ({100 * low:.{digits}f} to {100 * high:.{digits}f})"
    return text


def by_mask(store: Store, cells: Sequence[Cell], methods: Sequence[str], threshold: float | None) -> str:
    """Make a row for each network and a column for each mask: the methods' rates (or PSNR) at the last train loss."""
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    last = {(cell.fit, cell.mask, cell.method): cell for cell in cells if cell.is_at_last_loss}
    rows = []
    for fit in dict.fromkeys(cell.fit for cell in cells):
        records: list[Record | None] = []
        values = []
        for mask in masks:
            of_mask = [store.shown(last[fit, mask, method]) for method in methods]
            values.append(" / ".join(_value(record, threshold) for record in of_mask))
            records += of_mask
        if any(records):
            rows.append([network_name(fit), fit.optimizer, f"{_train_loss(records):.1e}", *values])
    rows += _generic_rows(store, cells, masks, threshold)
    return markdown(["network", "optimizer", "train loss", *masks], rows)


def _train_loss(records: Iterable[Record | None]) -> float | None:
    """Read the train loss of the first record there is."""
    for record in records:
        if record:
            return float(record.provenance["train_loss"])
    return None


def _generic_rows(
    store: Store, cells: Sequence[Cell], masks: Sequence[str], threshold: float | None
) -> list[list[str]]:
    """Make a row for each set of images that the generic method restored."""
    by_set: dict[str, dict[str, Record]] = {}
    for cell in cells:
        if not cell.sees_network and (record := store.shown(cell)):
            by_set.setdefault(f"none ({cell.method} on {cell.fit.images.name})", {})[cell.mask] = record
    rows = []
    for name, records in by_set.items():
        rows.append([name, "", "", *(_value(records.get(mask), threshold) for mask in masks)])
    return rows


def against_paper(store: Store, cells: Sequence[Cell], paper: Mapping[str, Sequence[float]], threshold: float) -> str:
    """Make a row for each network and method and a column for each mask, below the paper's own rows."""
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    rows: list[Sequence[str]] = []
    for method, values in paper.items():
        rows.append(["paper", "", method, "", *(f"{value:g}" for value in values)])
    rows += dict.fromkeys(_measured_rows(store, cells, threshold))  # all networks share the generic method's row
    titles = [f"{mask} (paper: its mask {i})" for i, mask in enumerate(masks, 1)]
    return markdown(["network", "optimizer", "method", "train loss", *titles], rows)


def _measured_rows(store: Store, cells: Sequence[Cell], threshold: float) -> Iterator[tuple[str, ...]]:
    for (fit, method), group in _by_method(cells).items():
        records = [store.shown(cell) for cell in group]
        if not any(records):
            continue
        head = ("none", "", method, "")
        if group[0].sees_network:
            head = (network_name(fit), fit.optimizer, method, f"{_train_loss(records):.1e}")
        yield (*head, *(_rate_with_interval(record, threshold) for record in records))


def _rate_with_interval(record: Record | None, threshold: float) -> str:
    if record is None:
        return ""
    return percent(record.score.rate(threshold), interval=True)


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


def _value(record: Record | None, threshold: float | None) -> str:
    if record is None:
        return "-"
    if threshold is None:
        return f"{record.score.mean_psnr:.0f}"
    return percent(record.score.rate(threshold))


def _by_method(cells: Sequence[Cell]) -> dict[tuple[Fit, str], list[Cell]]:
    groups: dict[tuple[Fit, str], list[Cell]] = {}
    for cell in cells:
        name = cell.method_name
        if cell.set == "control":
            name += ", unseen images"
        groups.setdefault((cell.fit, name), []).append(cell)
    return groups
