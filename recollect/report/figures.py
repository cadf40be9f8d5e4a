"""Which plots a report has, from the records and from the audit's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recollect.records import ANY_MASK, SET_LABELS, Record
from recollect.report.audit_plots import attractor_figures, membership_figures, noise_level_figures
from recollect.report.numbers import decibels, power_of_ten
from recollect.report.plots import (
    Figure,
    Plot,
    Point,
    Scale,
    Series,
    ThresholdLine,
    Tick,
    histogram_outline,
    share_ticks,
    simplified,
    x_scale,
    y_scale,
)
from recollect.report.read import Cell, SavedAudit
from recollect.report.results import Results
from recollect.scoring import threshold_grid

LENIENT, STRICT = 1e-3, 1e-8  # ends of the slider
PSNR_RANGE = (10.0, 100.0)  # in dB; values beyond the ends are counted in the first and last bar
MaskPlot = Callable[[Results, str], Plot | None]


def build_figures(audit: SavedAudit, results: Results) -> list[Figure]:
    return [
        *_figures_by_mask(
            results,
            _threshold_plot,
            "Recovery rate against the threshold",
            "Thresholds are stricter to the right. The upright line is the threshold chosen under Rates.",
        ),
        *_figures_by_mask(
            results,
            _psnr_plot,
            "How accurate the recoveries are",
            "Share of images by the PSNR of their recovery. An image right of the upright line counts as recovered. "
            "The first and last bar include all values beyond the ends.",
        ),
        *membership_figures(audit, results),
        *_figures_by_mask(
            results,
            _mask_overlap_plot,
            "How accurate the estimated masks are",
            "Share of images by overlap (intersection over union) of the erased pixels in the estimated and in the "
            "true mask; 1 is the exact mask. Below each plot: the mean overlap, and the share of correct mask values.",
        ),
        *attractor_figures(audit),
        *noise_level_figures(audit),
    ]


def _figures_by_mask(results: Results, draw: MaskPlot, title: str, caption: str) -> Iterator[Figure]:
    drawn = [draw(results, mask) for mask in results.rows]
    plots = [plot for plot in drawn if plot is not None]
    if plots:
        yield Figure(title, caption, plots)


def _cells_of_plot(results: Results, mask: str) -> Iterator[Cell]:
    """List the lines of a plot, training images last because the last line is drawn on top."""
    for set_name in reversed(results.sets):
        for method in reversed(results.methods):
            cell = Cell(set_name, mask, method)
            if cell in results.pools:
                yield cell


def _series(results: Results, cell: Cell, points: list[Point], **more: Any) -> Series:
    name = f"{cell.method}, {SET_LABELS[cell.set]}"
    return Series(name, results.colour(cell.method), cell.set != "train", points, **more)


def _threshold_plot(results: Results, mask: str) -> Plot | None:
    x, y = x_scale(decibels(LENIENT), decibels(STRICT)), y_scale(0, 1)
    grid = threshold_grid(STRICT, LENIENT, per_decade=20)
    series = []
    for cell in _cells_of_plot(results, mask):
        rates = results.pools[cell].score.rates(grid)
        points = [(x(decibels(threshold)), y(rate.value)) for threshold, rate in zip(grid, rates, strict=True)]
        series.append(_series(results, cell, simplified(points), markers=points[10::20]))
    if not series:
        return None
    ticks = [Tick(x(10.0 * exponent), power_of_ten(-exponent)) for exponent in range(3, 9)]
    return Plot(
        mask, "MSE threshold", "recovered", ticks, share_ticks(y), series, _threshold_line(x, results.threshold)
    )


def _psnr_plot(results: Results, mask: str) -> Plot | None:
    x, edges = x_scale(*PSNR_RANGE), np.linspace(*PSNR_RANGE, 31)
    shares = {}
    for cell in _cells_of_plot(results, mask):
        psnr = np.nan_to_num(results.pools[cell].score.psnr, nan=0.0, neginf=0.0)
        shares[cell] = _histogram(psnr.clip(*PSNR_RANGE), edges)
    if not shares:
        return None
    y, y_ticks = _share_axis(shares)
    series = [
        _series(results, cell, histogram_outline(heights, edges.tolist(), x, y), area=cell.set == "train")
        for cell, heights in shares.items()
    ]
    ticks = [Tick(x(value), f"{value}") for value in (20, 40, 60, 80, 100)]
    return Plot(mask, "PSNR in dB", "images", ticks, y_ticks, series, _threshold_line(x, results.threshold))


def _mask_overlap_plot(results: Results, mask: str) -> Plot | None:
    if mask == ANY_MASK:
        return None  # the best recovery of each image may be under any of the masks
    cells = list(_cells_of_plot(results, mask))
    records = {cell: record for cell in cells if (record := results.record(cell)) and record.mask_iou}
    if not records:
        return None
    x, edges = x_scale(0, 1), np.linspace(0, 1, 26)
    shares = {cell: _histogram(np.array(record.mask_iou), edges) for cell, record in records.items()}
    y, y_ticks = _share_axis(shares)
    series = []
    for cell, heights in shares.items():
        points, note = histogram_outline(heights, edges.tolist(), x, y), _mean_agreement(records[cell])
        series.append(_series(results, cell, points, area=cell.set == "train", note=note))
    ticks = [Tick(x(value), f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1)]
    return Plot(mask, "overlap with the true mask", "images", ticks, y_ticks, series)


def _threshold_line(x: Scale, threshold: float) -> ThresholdLine:
    return ThresholdLine(x.low, x.high, x(decibels(threshold)))


def _histogram(values: np.ndarray, edges: np.ndarray) -> list[float]:
    return (np.histogram(values, edges)[0] / len(values)).tolist()


def _share_axis(shares: Mapping[Cell, Sequence[float]]) -> tuple[Scale, list[Tick]]:
    """End the axis at a round share that is not below the highest bar."""
    highest = max(max(heights) for heights in shares.values())
    top = next(share for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if highest <= share)
    y = y_scale(0, top)
    return y, share_ticks(y, top)


def _mean_agreement(record: Record) -> str:
    return f"{np.mean(record.mask_iou or []):.2f}, {np.mean(record.mask_accuracy or []):.1%}"
