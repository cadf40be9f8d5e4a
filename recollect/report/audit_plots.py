"""Plots of what the audit itself worked out: membership and attractors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recollect.report.numbers import decimals, power_of_ten
from recollect.report.plots import Dot, Figure, Plot, Series, Tick, across, corners, share_ticks, upward
from recollect.report.read import Audit
from recollect.report.views import ANY, Results, slot_of


def roc_figure(audit: Audit, results: Results) -> Iterator[Figure]:
    """Can the recovery error alone tell training images from others?"""
    rows = [row for row in audit.table("membership") if row.get("roc")]
    x, y = across(0, 1), upward(0, 1)
    ticks = [Tick(x(v), f"{100 * v:.0f}%") for v in (0, 0.5, 1)]
    methods = list(dict.fromkeys([*results.methods, *(str(row["method"]) for row in rows)]))
    plots = []
    for mask in sorted({str(row["mask"]) for row in rows}, key=lambda m: _place(results, m)):
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
        "against share of controls falsely named. The diagonal is guessing. Below: the area under each curve, and "
        "the share found when one control in a hundred is falsely named."
    )
    yield Figure("Does recovery tell training images from others?", caption, plots)


def _place(results: Results, mask: str) -> tuple[int, str]:
    """Any mask first, then the masks in the page's order."""
    order = ["any", ANY, *results.masks]
    return (order.index(mask) if mask in order else len(order), mask)


def attractor_figure(audit: Audit) -> Iterator[Figure]:
    """Training images as fixed points: how far the network moves them, and whether it pulls towards them."""
    names = ("fixed_point_error", "spectral_radius")
    rows = [row for row in audit.table("attractors") if all(row.get(name) is not None for name in names)]
    if not rows:
        return
    radii = [float(row["spectral_radius"]) for row in rows]
    moved = [max(float(row["fixed_point_error"]), 1e-16) for row in rows]  # zero has no place on a logarithmic axis
    low, high = _decades(moved)
    x, y = across(0, max(1.25, *radii)), upward(10.0**low, 10.0**high, log=True)
    dots = [
        Dot(x(radius), y(error), bool(row.get("recovered")), str(row.get("id", "")))
        for row, radius, error in zip(rows, radii, moved, strict=True)
    ]
    x_ticks = [Tick(x(v), f"{v:g}") for v in (0, 0.5, 1)]
    y_ticks = [Tick(y(10.0**k), power_of_ten(k)) for k in (low, high)]
    title = "training images, one dot each"
    plot = Plot(
        title, "spectral radius of the Jacobian", "MSE between x and f(x)", x_ticks, y_ticks, rule=x(1), dots=dots
    )
    caption = (
        "Left of the upright line (spectral radius below 1) and low down, the network pulls its surroundings towards "
        "the image. Filled dots: recovered; rings: not."
    )
    yield Figure("Are training images attractors?", caption, [plot])


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = int(np.floor(np.log10(min(values)))), int(np.ceil(np.log10(max(values))))
    return low, max(high, low + 1)


def _tpr(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
