"""Plots of the audit's own findings: membership, attractors and noise levels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from recollect.records import SET_LABELS
from recollect.report.numbers import decimals, power_of_ten
from recollect.report.plots import Dot, Figure, Plot, Scale, Series, Tick, share_ticks, simplified, x_scale, y_scale
from recollect.report.read import SavedAudit
from recollect.report.results import Results

SMALLEST_ERROR = 1e-16  # zero has no position on a logarithmic axis
MOST_DECADES_NAMED = 4  # on an axis
BY_LEVEL = ("recovered", "fixed_point_error", "denoising_loss")  # what is measured at a noise level, for each set


def membership_figures(audit: SavedAudit, results: Results) -> Iterator[Figure]:
    """Draw the ROC curves of telling training images from unseen ones by the recovery error."""
    by_mask: dict[str, list[dict[str, Any]]] = {mask: [] for mask in results.rows}
    for row in audit.table("membership"):
        if row["method"] in results.methods and row["mask"] in by_mask:
            by_mask[row["mask"]].append(row)
    caption = (
        "An image whose recovery error is small enough is taken for a training image. Each curve shows the share of "
        "training images identified against the share of unseen images mistaken for them. The diagonal is guessing. "
        "Below each plot: the area under the curve with its 95% interval, and with at least 100 unseen images the "
        "share identified at 1% mistaken ones."
    )
    plots = [_roc_plot(mask, rows, results) for mask, rows in by_mask.items() if rows]
    if plots:
        yield Figure("Does the recovery error tell training images from unseen ones?", caption, plots)


def attractor_figures(audit: SavedAudit) -> Iterator[Figure]:
    """Draw how far the network moves each training image, and whether it pulls towards the image."""
    rows = [row for row in audit.table("attractors") if row["fixed_point_error"] is not None]
    rows = [row for row in rows if row["spectral_radius"] is not None]
    if not rows:
        return
    caption = (
        "The network pulls its surroundings towards an image that is left of the upright line (spectral radius below "
        "1) and low down. Filled dots are recovered images; rings are not recovered."
    )
    yield Figure("Are training images attractors?", caption, [_attractor_plot(rows)])


def noise_level_figures(audit: SavedAudit) -> Iterator[Figure]:
    """Draw where a diffusion model's memory sits: recovery and two errors of its own, against the noise level."""
    rows = audit.table("noise_levels")
    if len(rows) < 2:
        return
    caption = (
        "Each noise level is taken alone, for a few images of each set. Recovery: a few rounds of the blind attack. "
        "Fixed-point error: how far the model moves an undamaged image (median MSE). Denoising loss: the error of "
        "removing noise of this level (mean MSE). A gap between training and unseen images is memory."
    )
    plots = [
        _recovery_by_level(rows),
        _error_by_level(rows, "fixed_point_error", "fixed-point error"),
        _error_by_level(rows, "denoising_loss", "denoising loss"),
    ]
    drawn = [plot for plot in plots if plot.series]
    if drawn:
        yield Figure("At which noise levels does the model remember?", caption + _left_out(rows), drawn, together=True)


def _left_out(rows: Sequence[dict[str, Any]]) -> str:
    """Say at which noise levels a point is missing: where the model's values are not finite, none was measured."""
    levels = [row["sigma"] for row in rows if any(None in row[key].values() for key in BY_LEVEL)]
    if not levels:
        return ""
    named = ", ".join(f"{level:g}" for level in levels)
    return f" The model returned NaN or infinite values at noise level {named}: missing points are unknown."


def _measured(rows: Sequence[dict[str, Any]], key: str, name: str) -> list[tuple[float, float]]:
    """List the noise levels at which a value of a set is known, with the value."""
    return [(row["sigma"], row[key][name]) for row in rows if row[key][name] is not None]


def _recovery_by_level(rows: Sequence[dict[str, Any]]) -> Plot:
    y = y_scale(0, 1)
    return _plot_by_level(rows, "recovered", "recovery", "approximately recovered", y, share_ticks(y))


def _error_by_level(rows: Sequence[dict[str, Any]], key: str, title: str) -> Plot:
    values = [max(value, SMALLEST_ERROR) for row in rows for value in row[key].values() if value is not None]
    lowest, highest = _decades(values or [1.0])
    y = y_scale(10.0**lowest, 10.0**highest, log=True)
    step = -(-(highest - lowest) // MOST_DECADES_NAMED)
    ticks = [Tick(y(10.0**exponent), power_of_ten(exponent)) for exponent in range(lowest, highest + 1, step)]
    return _plot_by_level(rows, key, title, "MSE", y, ticks)


def _plot_by_level(
    rows: Sequence[dict[str, Any]], key: str, title: str, y_title: str, y: Scale, y_ticks: list[Tick]
) -> Plot:
    levels = [row["sigma"] for row in rows]
    x, series = x_scale(min(levels), max(levels), log=True), []
    for name in reversed(rows[0][key]):  # training images are drawn on top
        points = [(x(level), y(max(value, SMALLEST_ERROR))) for level, value in _measured(rows, key, name)]
        if points:
            series.append(Series(f"{SET_LABELS[name]} images", "neutral", name != "train", points, points))
    ticks = [Tick(x(level), f"{level:g}") for level in levels]
    return Plot(title, "noise level", y_title, ticks, y_ticks, series)


def _roc_plot(mask: str, rows: Sequence[dict[str, Any]], results: Results) -> Plot:
    x, y = x_scale(0, 1), y_scale(0, 1)
    series = []
    for row in sorted(rows, key=lambda row: -results.methods.index(row["method"])):  # the first method is drawn on top
        points = [(x(false_positives), y(true_positives)) for false_positives, true_positives in row["roc"]]
        note = _membership_note(row)
        series.append(
            Series(row["method"], results.colour(row["method"]), control=False, points=simplified(points), note=note)
        )
    ticks = [Tick(x(share), f"{share:.0%}") for share in (0, 0.5, 1)]
    return Plot(mask, "unseen images mistaken", "identified", ticks, share_ticks(y), series, diagonal=True)


def _membership_note(row: dict[str, Any]) -> str:
    """Write the area with its interval; the share identified is known only with enough unseen images."""
    area = f"{decimals(row['auc'], 3)} [{decimals(row['auc_low'], 2)}, {decimals(row['auc_high'], 2)}]"
    if row["tpr_at_1_fpr"] is None:
        return area
    return f"{area}, {row['tpr_at_1_fpr']:.1%}"


def _attractor_plot(rows: Sequence[dict[str, Any]]) -> Plot:
    radii = [row["spectral_radius"] for row in rows]
    errors = [max(row["fixed_point_error"], SMALLEST_ERROR) for row in rows]
    lowest, highest = _decades(errors)
    x, y = x_scale(0, max(1.25, *radii)), y_scale(10.0**lowest, 10.0**highest, log=True)
    dots = [
        Dot(x(radius), y(error), row["recovered"], row["id"])
        for row, radius, error in zip(rows, radii, errors, strict=True)
    ]
    return Plot(
        "training images, one dot each",
        x_title="spectral radius of the Jacobian",
        y_title="MSE between x and f(x)",
        x_ticks=[Tick(x(radius), f"{radius:g}") for radius in (0, 0.5, 1)],
        y_ticks=[Tick(y(10.0**exponent), power_of_ten(exponent)) for exponent in (lowest, highest)],
        limit=x(1),
        dots=dots,
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return lowest, max(highest, lowest + 1)
