import pytest

from recollect.records import ANY_MASK
from recollect.report.audit_plots import attractor_figures, membership_figures, noise_level_figures
from recollect.report.plots import BOTTOM, LEFT, RIGHT, TOP
from recollect.report.results import build_results
from tests.report.making import AuditFiles


def test_membership_is_drawn_for_every_mask_with_any_mask_first(planted: AuditFiles) -> None:
    (figure,) = membership_figures(planted.in_memory, build_results(planted.in_memory))
    assert [plot.title for plot in figure.plots] == [ANY_MASK, "block", "dust"]
    for plot in figure.plots:
        assert {series.name for series in plot.series} == {"blind", "iterate", "known"}
        for series in plot.series:
            assert series.points[0] == (LEFT, BOTTOM)
            assert series.points[-1] == (RIGHT, TOP)
            row = next(
                row for row in planted.facts["membership"] if (row["mask"], row["method"]) == (plot.title, series.name)
            )
            assert series.note == f"{row['auc']:.3f} [{row['auc_low']:.2f}, {row['auc_high']:.2f}]"


def test_the_share_identified_is_shown_where_it_is_known(planted: AuditFiles) -> None:
    row = {**planted.facts["membership"][0], "tpr_at_1_fpr": 0.25}
    audit = AuditFiles(planted.records, facts={**planted.facts, "membership": [row]}).in_memory
    (figure,) = membership_figures(audit, build_results(audit))
    assert str(figure.plots[0].series[0].note).endswith("], 25.0%")


def test_without_membership_there_is_no_figure(planted: AuditFiles) -> None:
    audit = AuditFiles(planted.records).in_memory
    assert list(membership_figures(audit, build_results(audit))) == []


def test_attractors_are_dots_at_their_radius_and_filled_if_recovered(planted: AuditFiles) -> None:
    (figure,) = attractor_figures(planted.in_memory)
    (plot,) = figure.plots
    rows = planted.facts["attractors"]
    assert [dot.name for dot in plot.dots] == [row["id"] for row in rows]
    assert [dot.filled for dot in plot.dots] == [row["recovered"] for row in rows]
    assert plot.limit is not None
    for dot, row in zip(plot.dots, rows, strict=True):
        expected = LEFT + row["spectral_radius"] * (plot.limit - LEFT)
        assert dot.x == pytest.approx(expected, abs=0.2)
        assert TOP <= dot.y <= BOTTOM


def test_without_attractors_there_is_no_figure(planted: AuditFiles) -> None:
    assert list(attractor_figures(AuditFiles(planted.records, facts={"attractors": None}).in_memory)) == []


def level(sigma: float, recovered: dict[str, float]) -> dict[str, object]:
    errors = {"train": 1e-5, "control": 0.1}
    return {"sigma": sigma, "recovered": recovered, "fixed_point_error": errors, "denoising_loss": errors}


def test_errors_of_a_diffusion_model_are_drawn_against_the_noise_level(planted: AuditFiles) -> None:
    rows = [level(sigma, {"train": 1.0, "control": 0.0}) for sigma in (0.1, 0.4)]
    (figure,) = noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": rows}).in_memory)
    assert [plot.title for plot in figure.plots] == ["recovery", "fixed-point error", "denoising loss"]
    assert (figure.shown, figure.folded) == (figure.plots, [])
    for plot in figure.plots[1:]:
        unseen, training = plot.series
        assert training.points == [(LEFT, BOTTOM), (RIGHT, BOTTOM)]
        assert unseen.points == [(LEFT, TOP), (RIGHT, TOP)]
        assert [tick.label for tick in plot.y_ticks] == ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]
    assert "infinite" not in figure.caption


def test_recovery_of_a_diffusion_model_is_drawn_against_the_noise_level(planted: AuditFiles) -> None:
    shares = {0.1: (0.5, 0.0), 0.2: (1.0, 0.25), 0.4: (0.0, 0.0)}
    rows = [level(sigma, {"train": t, "control": c}) for sigma, (t, c) in shares.items()]
    (figure,) = noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": rows}).in_memory)
    unseen, training = figure.plots[0].series
    middle = (LEFT + RIGHT) / 2  # the axis is logarithmic
    assert training.points == [(LEFT, (TOP + BOTTOM) / 2), (middle, TOP), (RIGHT, BOTTOM)]
    assert (training.name, training.control, unseen.name, unseen.control) == (
        "training images", False, "unseen images", True,
    )  # fmt: skip
    assert [tick.label for tick in figure.plots[0].x_ticks] == ["0.1", "0.2", "0.4"]


def test_a_noise_level_at_which_nothing_is_known_is_left_out_and_named(planted: AuditFiles) -> None:
    rows = [level(sigma, {"train": 1.0, "control": 0.0}) for sigma in (0.1, 0.2, 0.4)]
    nothing = {"train": None, "control": None}
    rows[1] = {**rows[1], "recovered": nothing, "fixed_point_error": nothing, "denoising_loss": nothing}
    (figure,) = noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": rows}).in_memory)
    for plot in figure.plots:
        assert [len(series.points) for series in plot.series] == [2, 2]
        assert [point[0] for point in plot.series[1].points] == [LEFT, RIGHT]
        assert [tick.label for tick in plot.x_ticks] == ["0.1", "0.2", "0.4"]
    assert figure.caption.endswith("at noise level 0.2: missing points are unknown.")


def test_what_is_known_at_no_noise_level_is_not_drawn(planted: AuditFiles) -> None:
    nothing = {"train": None, "control": None}
    rows = [{**level(sigma, {"train": 1.0, "control": 0.0}), "denoising_loss": nothing} for sigma in (0.1, 0.4)]
    (figure,) = noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": rows}).in_memory)
    assert [plot.title for plot in figure.plots] == ["recovery", "fixed-point error"]
    rows = [{**row, "recovered": nothing, "fixed_point_error": nothing} for row in rows]
    assert list(noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": rows}).in_memory)) == []


@pytest.mark.parametrize("levels", [None, [], [{"sigma": 0.1, "recovered": {"train": 1.0}}]])
def test_fewer_than_two_noise_levels_are_not_drawn(planted: AuditFiles, levels: object) -> None:
    assert list(noise_level_figures(AuditFiles(planted.records, facts={"noise_levels": levels}).in_memory)) == []
