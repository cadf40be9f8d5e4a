"""Which plots a report has, from results and the audit's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from recollect.records import Record
from recollect.report.audit_plots import attractor_figure, roc_figure
from recollect.report.numbers import decibels, plain_value, power_of_ten
from recollect.report.plots import (
    Cut,
    Figure,
    Plot,
    Point,
    Scale,
    Series,
    Tick,
    across,
    corners,
    share_ticks,
    steps,
    upward,
)
from recollect.report.read import Audit
from recollect.report.views import ANY, START, Results, View, families, slot_of
from recollect.scoring import threshold_grid

LENIENT, STRICT = 1e-3, 1e-8  # ends of the slider
HISTOGRAM = (10.0, 100.0)  # dB; what lies beyond is counted in the last bar


def figures_of(audit: Audit, results: Results) -> list[Figure]:
    made = [*_loss_figures(results), *_view_figures(results, _threshold_plot, *_THRESHOLD)]
    made += [*_view_figures(results, _psnr_plot, *_PSNR), *roc_figure(audit, results)]
    made += [*_view_figures(results, _agreement_plot, *_AGREEMENT), *attractor_figure(audit)]
    return [figure for figure in made if figure.plots]


_THRESHOLD = (
    "Recovery rate against the threshold",
    "Stricter to the right. The upright line is the threshold chosen above.",
)
_PSNR = (
    "How close the recoveries came",
    "Share of images by PSNR of their recovery. Right of the upright line an image counts as recovered; "
    "what lies beyond the ends is counted in the first and last bar.",
)
_AGREEMENT = (
    "Was the mask found?",
    "Share of images by overlap (intersection over union) of the erased pixels a method found with those truly erased: "
    "1 is the exact mask. Below: the mean overlap, and the share of values told right.",
)
Draw = Callable[[Results, View, str], Plot | None]


def _view_figures(results: Results, draw: Draw, title: str, caption: str) -> Iterator[Figure]:
    for number, view in enumerate(results.views):
        plots = [plot for mask in results.rows if (plot := draw(results, view, mask))]
        yield Figure(title, caption, plots, number)


def _lines(results: Results, view: View, mask: str) -> Iterator[tuple[str, str, int]]:
    """Set, method and pool of every line of a plot; control first, so that train is drawn over it."""
    for set_ in reversed(results.sets):
        for method in reversed(results.methods):
            if (set_, mask, method) in view.pools:
                yield set_, method, view.pools[set_, mask, method]


def _identity(results: Results, set_: str, method: str) -> tuple[str, int, bool]:
    """Name, slot and whether it is of control images: what every line begins with."""
    return f"{method}, {set_}", slot_of(method, results.methods), set_ != "train"


def _threshold_plot(results: Results, view: View, mask: str) -> Plot | None:
    x, y = across(decibels(LENIENT), decibels(STRICT)), upward(0, 1)
    grid = threshold_grid(STRICT, LENIENT, per_decade=20)
    series = []
    for set_, method, pool in _lines(results, view, mask):
        rates = results.pools[pool].score.rates(grid)
        points = [(x(decibels(t)), y(rate.value)) for t, rate in zip(grid, rates, strict=True)]
        series.append(Series(*_identity(results, set_, method), corners(points), markers=points[10::20]))
    ticks = [Tick(x(10.0 * k), power_of_ten(-k)) for k in range(3, 9)]
    cut = Cut(x.low, x.high, x(decibels(START)))
    return Plot(mask, "MSE threshold", "recovered", ticks, share_ticks(y), series, cut) if series else None


def _psnr_plot(results: Results, view: View, mask: str) -> Plot | None:
    x, edges = across(*HISTOGRAM), np.linspace(*HISTOGRAM, 31)
    shares = {}
    for set_, method, pool in _lines(results, view, mask):
        values = np.nan_to_num(results.pools[pool].score.psnr.numpy(), nan=0.0, neginf=0.0).clip(*HISTOGRAM)
        shares[set_, method] = np.histogram(values, edges)[0] / len(values)
    if not shares:
        return None
    top = _round_up(max(float(s.max()) for s in shares.values()))
    y = upward(0, top)
    series = [
        Series(*_identity(results, set_, method), _outline(s, edges, x, y), area=set_ == "train")
        for (set_, method), s in shares.items()
    ]
    ticks = [Tick(x(v), f"{v}") for v in (20, 40, 60, 80, 100)]
    return Plot(mask, "PSNR in dB", "images", ticks, share_ticks(y, top), series, Cut(*HISTOGRAM, x(decibels(START))))


def _agreement_plot(results: Results, view: View, mask: str) -> Plot | None:
    if mask == ANY:
        return None
    found = {}
    for set_, method, pool in _lines(results, view, mask):
        record = results.records[results.pools[pool].cells[0]]
        if record.mask_iou:
            found[set_, method] = record
    if not found:
        return None
    x, edges = across(0, 1), np.linspace(0, 1, 26)
    shares = {k: np.histogram(_numbers(r.mask_iou), edges)[0] / len(r.ids) for k, r in found.items()}
    top = _round_up(max(float(s.max()) for s in shares.values()))
    y = upward(0, top)
    series = [
        Series(*_identity(results, *key), _outline(s, edges, x, y), area=key[0] == "train", note=_agreement(found[key]))
        for key, s in shares.items()
    ]
    ticks = [Tick(x(v), f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1)]
    return Plot(mask, "overlap with the true mask", "images", ticks, share_ticks(y, top), series)


def _outline(shares: np.ndarray, edges: np.ndarray, x: Scale, y: Scale) -> list[Point]:
    return corners(steps(shares.tolist(), edges.tolist(), x, y))


def _agreement(record: Record) -> str:
    accuracy, iou = _numbers(record.mask_accuracy), _numbers(record.mask_iou)
    told = f", {np.mean(accuracy):.1%}" if len(accuracy) else ""
    return f"{np.mean(iou):.2f}{told}" if len(iou) else ""


def _loss_figures(results: Results) -> Iterator[Figure]:
    """Rates against train loss, from checkpoints; they move with the threshold."""
    for views in families(results.views):
        losses = [v.milestone or 0.0 for v in views]
        x, y = across(max(losses), min(losses), log=True), upward(0, 1)
        ticks = [Tick(x(loss), plain_value(loss) if loss >= 1e-3 else _power(loss)) for loss in losses]
        plots = [
            Plot(mask, "train loss", "recovered", ticks, share_ticks(y), list(_loss_series(results, views, mask, x, y)))
            for mask in results.rows
        ]
        family = {k: v for k, v in views[0].facets.items() if k != "milestone"}
        of = "".join(f", {k} {plain_value(v)}" for k, v in family.items())
        caption = (
            "One point a checkpoint, trained longer to the right; the points move with the threshold chosen above."
        )
        yield Figure(f"Recovery rate against train loss{of}", caption, plots)


def _loss_series(results: Results, views: list[View], mask: str, x: Scale, y: Scale) -> Iterator[Series]:
    for set_, method, _ in _lines(results, views[-1], mask):
        there = [v for v in views if (set_, mask, method) in v.pools]
        pools = [v.pools[set_, mask, method] for v in there]
        rates = [results.pools[p].score.rate(START).value for p in pools]
        points = [(x(v.milestone or 0.0), y(rate)) for v, rate in zip(there, rates, strict=True)]
        yield Series(*_identity(results, set_, method), points, markers=points, pools=pools)


def _numbers(values: Sequence[float | None] | None) -> np.ndarray:
    return np.array([v for v in values or [] if v is not None], dtype=float)


def _round_up(share: float) -> float:
    """The top of an axis: a round share that is not below the highest bar."""
    return next((top for top in (0.1, 0.2, 0.4, 0.6, 0.8) if share <= top), 1.0)


def _power(loss: float) -> str:
    exponent = round(np.log10(loss))
    return power_of_ten(exponent) if abs(np.log10(loss) - exponent) < 0.01 else f"{loss:.0e}"
