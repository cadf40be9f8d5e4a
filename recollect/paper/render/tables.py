"""Tables in markdown, the paper's numbers beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from recollect.paper.cells import Cell, Fit
from recollect.paper.store import Results
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
    """A share in percent, with one digit where one image is less than one percent."""
    digits = 1 if rate.total > 100 else 0
    low, high = rate.interval
    more = f" ({100 * low:.{digits}f} to {100 * high:.{digits}f})" if interval else ""
    return f"{100 * rate.value:.{digits}f}{more}"


def by_mask(results: Results, cells: Sequence[Cell], methods: Sequence[str], threshold: float | None) -> str:
    """A row a network and optimizer, a column a mask: the methods' rates (or mean PSNR) at the last train loss."""
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    last = {(c.fit, c.mask, c.method): c for c in cells if c.loss == c.fit.milestones[-1]}
    rows = []
    for fit in dict.fromkeys(cell.fit for cell in cells):
        found = [[results.best_of(last[fit, mask, m]) for m in methods] for mask in masks]
        if any(record for records in found for record in records):
            loss = next(r for records in found for r in records if r).provenance["train_loss"]
            shown = [" / ".join(_value(record, threshold) for record in records) for records in found]
            rows.append([network_name(fit), fit.optimizer, f"{loss:.1e}", *shown])
    rows += _generic_rows(results, cells, masks, threshold)
    return markdown(["network", "optimizer", "train loss", *masks], rows)


def _generic_rows(
    results: Results, cells: Sequence[Cell], masks: Sequence[str], threshold: float | None
) -> list[list[str]]:
    """A row for each set of images that the method which sees no network was tried on: its value for each mask."""
    found: dict[str, dict[str, Record]] = {}
    for cell in cells:
        if not cell.sees_network and (record := results.find(cell)):
            found.setdefault(f"none ({cell.method} on {cell.fit.images.name})", {})[cell.mask] = record
    return [[name, "", "", *(_value(records.get(m), threshold) for m in masks)] for name, records in found.items()]


def against_paper(
    results: Results, cells: Sequence[Cell], paper: Mapping[str, Sequence[float]], threshold: float
) -> str:
    """A row a network and method, a column a mask, each measured next to the paper's three numbers."""
    masks = list(dict.fromkeys(cell.mask for cell in cells))
    rows: list[Sequence[str]] = [
        ["paper", "", method, "", *(f"{value:g}" for value in values)] for method, values in paper.items()
    ]
    rows += dict.fromkeys(_measured_rows(results, cells, threshold))  # the generic method's is one for all networks
    titles = [f"{mask} (paper: its mask {i})" for i, mask in enumerate(masks, 1)]
    return markdown(["network", "optimizer", "method", "train loss", *titles], rows)


def _measured_rows(results: Results, cells: Sequence[Cell], threshold: float) -> Iterator[tuple[str, ...]]:
    for (fit, method), some in _grouped(cells).items():
        found = [results.best_of(cell) for cell in some]
        if not any(found):
            continue
        whose = ("none", "", method, "")
        if some[0].sees_network:
            loss = next(r for r in found if r).provenance["train_loss"]
            whose = (network_name(fit), fit.optimizer, method, f"{loss:.1e}")
        yield (*whose, *(percent(r.score.rate(threshold), interval=True) if r else "" for r in found))


def order_holds(results: Results, cells: Sequence[Cell], threshold: float) -> str:
    """In how many places blind recovers more images than iterating does, and where it recovers fewer."""
    own = [c for c in cells if c.set == "train" and c.gamma is None]
    rivals = {(c.fit, c.loss, c.mask): c for c in own if c.method == "iterate"}
    counts = []
    for cell in (c for c in own if c.method == "blind"):
        place = results.stand_in(cell)
        rival = replace(rivals[cell.fit, cell.loss, cell.mask], loss=place.loss)
        blind, iterate = results.find(place), results.find(rival)
        if blind and iterate:
            counts.append((place, blind.score.rate(threshold).count, iterate.score.rate(threshold).count))
    more, fewer = ([cell for cell, blind, iterate in counts if sign * (blind - iterate) > 0] for sign in (1, -1))
    none = sum(blind == iterate == 0 for _, blind, iterate in counts)
    equal = len(counts) - len(more) - len(fewer)
    words = f"Blind recovers more images than iterating in {len(more)} of {len(counts)} places, as many in {equal}"
    words += f" ({none} of them none)" if none else ""
    where = ", ".join(f"{cell.fit.name} {cell.loss_name} {cell.mask}" for cell in fewer)
    return f"{words}, fewer in {len(fewer)}{': ' + where if fewer else ''}.\n"


def _value(record: Record | None, threshold: float | None) -> str:
    if record is None:
        return "-"
    return f"{record.score.mean_psnr:.0f}" if threshold is None else percent(record.score.rate(threshold))


def _grouped(cells: Sequence[Cell]) -> dict[tuple[Fit, str], list[Cell]]:
    groups: dict[tuple[Fit, str], list[Cell]] = {}
    for cell in cells:
        name = cell.method_name + (", images not trained on" if cell.set == "control" else "")
        groups.setdefault((cell.fit, name), []).append(cell)
    return groups
