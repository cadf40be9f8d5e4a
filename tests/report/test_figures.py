import pytest

from recollect.records import ANY_MASK
from recollect.report.figures import build_figures
from recollect.report.plots import BOTTOM, TOP, Figure, Plot
from recollect.report.results import build_results
from tests.report.making import AuditFiles, record


def figures(files: AuditFiles) -> dict[str, Figure]:
    return {figure.title: figure for figure in build_figures(files.in_memory, build_results(files.in_memory))}


def shares(plot: Plot, number: int = 0) -> list[float]:
    """The heights of a line as shares of an axis that ends at 100%."""
    return [(BOTTOM - y) / (BOTTOM - TOP) for _, y in plot.series[number].points]


def test_an_audit_has_these_figures(planted: AuditFiles) -> None:
    assert list(figures(planted)) == [
        "Recovery rate against the threshold",
        "How accurate the recoveries are",
        "Does the recovery error tell training images from unseen ones?",
        "How accurate the estimated masks are",
        "Are training images attractors?",
    ]


def test_lines_have_the_methods_colours_and_training_images_are_on_top(planted: AuditFiles) -> None:
    plot = figures(planted)["Recovery rate against the threshold"].plots[0]
    assert plot.series[-1].name == "blind, training"
    assert [series.colour for series in plot.series] == ["grey", "green", "blue"] * 2
    assert [series.control for series in plot.series] == [True] * 3 + [False] * 3


def test_rates_fall_with_a_stricter_threshold() -> None:
    plot = figures(AuditFiles([record([1e-4, 1e-6, 1e-9, None])]))["Recovery rate against the threshold"].plots[0]
    heights = shares(plot)
    assert heights == sorted(heights, reverse=True)
    assert [heights[0], heights[-1]] == pytest.approx([0.75, 0.25])


def test_a_histogram_counts_every_image_also_beyond_its_ends() -> None:
    plot = figures(AuditFiles([record([1.0, 1e-12, None, 1e-12])]))["How accurate the recoveries are"].plots[0]
    top = float(plot.y_ticks[-1].label.rstrip("%")) / 100
    assert max(shares(plot)) * top == pytest.approx(0.5, abs=0.01)
    assert shares(plot)[1] * top == pytest.approx(0.5, abs=0.01)


def test_masks_are_compared_only_where_a_method_estimated_one(planted: AuditFiles) -> None:
    plots = figures(planted)["How accurate the estimated masks are"].plots
    assert ANY_MASK not in [plot.title for plot in plots]
    assert {series.name.split(",")[0] for plot in plots for series in plot.series} == {"blind"}
    blind = next(r for r in planted.records if tuple(r.cell.values()) == ("train", "block", "blind"))
    assert blind.mask_iou is not None
    assert plots[0].series[-1].note.startswith(f"{sum(blind.mask_iou) / 24:.2f}, ")
