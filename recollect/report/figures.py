"""Which plots a report has, from results and the audit's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.records import Record
from recollect.report.plots import Cut, Dot, Plot, Series, Tick, across, corners, share_ticks, steps, upward
from recollect.report.reading import Audit
from recollect.report.views import ANY, START, Results, View, families
from recollect.report.words import METHODS, decibels, decimals, plain_value, power_of_ten
from recollect.scoring import threshold_grid

LENIENT, STRICT = 1e-3, 1e-8  # ends of the slider
HISTOGRAM = (10.0, 100.0)  # dB; what lies beyond is counted in the last bar


@dataclass(frozen=True)
class Figure:
    """Small plots side by side, one a mask, under one title."""

    title: str
    caption: str
    plots: list[Plot]
    view: int | None = None  # the number of the view it belongs to; None: shown always


def slot_of(method: str, methods: Sequence[str]) -> int:
    """A method's colour: the same in every report for the known ones."""
    known = list(METHODS)
    return known.index(method) if method in known else len(known) + [m for m in methods if m not in known].index(method)


def figures_of(audit: Audit, results: Results) -> list[Figure]:
    made = [*_loss_figures(results), *_view_figures(results, _threshold_plot, *_THRESHOLD)]
    made += [*_view_figures(results, _psnr_plot, *_PSNR), *_roc_figure(audit, results)]
    made += [*_view_figures(results, _agreement_plot, *_AGREEMENT), *_attractor_figure(audit)]
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
    "Did the blind method find the mask?",
    "Share of images by overlap (intersection over union) of the erased pixels it found with those truly erased: "
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


def _series(results: Results, set_: str, method: str, **more: object) -> Series:
    slot = slot_of(method, results.methods)
    return Series(f"{method}, {set_}", slot, set_ != "train", **more)  # type: ignore[arg-type]


def _threshold_plot(results: Results, view: View, mask: str) -> Plot | None:
    x, y = across(decibels(LENIENT), decibels(STRICT)), upward(0, 1)
    grid = threshold_grid(STRICT, LENIENT, per_decade=20)
    series = []
    for set_, method, pool in _lines(results, view, mask):
        rates = results.pools[pool].score.rates(grid)
        points = [(x(decibels(t)), y(rate.value)) for t, rate in zip(grid, rates, strict=True)]
        series.append(_series(results, set_, method, points=corners(points), markers=points[10::20]))
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
        _series(results, set_, method, points=corners(steps(s, edges, x, y)), area=set_ == "train")
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
        _series(
            results, *key, points=corners(steps(s, edges, x, y)), area=key[0] == "train", note=_agreement(found[key])
        )
        for key, s in shares.items()
    ]
    ticks = [Tick(x(v), f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1)]
    return Plot(mask, "overlap with the true mask", "images", ticks, share_ticks(y, top), series)


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


def _loss_series(results: Results, views: list[View], mask: str, x: object, y: object) -> Iterator[Series]:
    for set_, method, _ in _lines(results, views[-1], mask):
        there = [v for v in views if (set_, mask, method) in v.pools]
        pools = [v.pools[set_, mask, method] for v in there]
        rates = [results.pools[p].score.rate(START).value for p in pools]
        points = [(x(v.milestone), y(rate)) for v, rate in zip(there, rates, strict=True)]  # type: ignore[operator]
        yield _series(results, set_, method, points=points, markers=points, pools=pools)


def _roc_figure(audit: Audit, results: Results) -> Iterator[Figure]:
    """Can the recovery error alone tell training images from others?"""
    rows = [row for row in audit.table("membership") if row.get("roc")]
    x, y = across(0, 1), upward(0, 1)
    ticks = [Tick(x(v), f"{100 * v:.0f}%") for v in (0, 0.5, 1)]
    methods = list(dict.fromkeys([*results.methods, *(str(row["method"]) for row in rows)]))
    plots = []
    for mask in dict.fromkeys(str(row["mask"]) for row in rows):
        series = []
        for row in sorted((r for r in rows if str(r["mask"]) == mask), key=lambda r: -methods.index(str(r["method"]))):
            method = str(row["method"])
            points = [(x(float(a)), y(float(b))) for a, b in row["roc"]]
            note = f"{decimals(row.get('auc'), 3)}, {_tpr(row.get('tpr_at_1_fpr'))}"
            series.append(Series(method, slot_of(method, methods), False, corners(points), note=note))
        name = ANY if mask == "any" else mask
        plots.append(Plot(name, "controls taken for training", "found", ticks, share_ticks(y), series, diagonal=True))
    caption = (
        "Naming an image a training image when its recovery error is small enough: share of training images found "
        "against share of controls falsely named. The diagonal is guessing. Below: the area under each curve, and the share "
        "found when one control in a hundred is falsely named."
    )
    yield Figure("Does recovery tell training images from others?", caption, plots)


def _attractor_figure(audit: Audit) -> Iterator[Figure]:
    rows = [r for r in audit.table("attractors") if _positive(r.get("fixed_point_error")) and r.get("spectral_radius")]
    if not rows:
        return
    radii = [float(r["spectral_radius"]) for r in rows]
    low, high = _decades([float(r["fixed_point_error"]) for r in rows])
    x, y = across(0, max(1.25, *radii)), upward(10.0**low, 10.0**high, log=True)
    dots = [
        Dot(x(radius), y(float(row["fixed_point_error"])), bool(row.get("recovered")), str(row.get("id", "")))
        for row, radius in zip(rows, radii, strict=True)
    ]
    x_ticks = [Tick(x(v), f"{v:g}") for v in (0, 0.5, 1)]
    y_ticks = [Tick(y(10.0**k), power_of_ten(k)) for k in (low, high)]
    title = "training images, one dot each"
    plot = Plot(title, "spectral radius of the Jacobian", "|f(x) − x|²", x_ticks, y_ticks, rule=x(1), dots=dots)
    caption = (
        "Left of the upright line (spectral radius below 1) and low down, the network pulls its surroundings towards "
        "the image. Filled dots: recovered; rings: not."
    )
    yield Figure("Are training images attractors?", caption, [plot])


def _numbers(values: Sequence[float | None] | None) -> np.ndarray:
    return np.array([v for v in values or [] if v is not None], dtype=float)


def _round_up(share: float) -> float:
    """The top of an axis: a round share that is not below the highest bar."""
    return next((top for top in (0.1, 0.2, 0.4, 0.6, 0.8) if share <= top), 1.0)


def _power(loss: float) -> str:
    exponent = round(np.log10(loss))
    return power_of_ten(exponent) if abs(np.log10(loss) - exponent) < 0.01 else f"{loss:.0e}"


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = int(np.floor(np.log10(min(values)))), int(np.ceil(np.log10(max(values))))
    return low, max(high, low + 1)


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _tpr(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
