from recollect.report.plots import BOTTOM, TOP, Scale, Series, histogram_outline, share_ticks, simplified, y_scale


def test_a_scale_maps_values_to_coordinates_and_never_outside_them() -> None:
    assert Scale(1e-8, 1e-4, 0, 100, log=True)(1e-6) == 50
    assert Scale(0, 1, 100, 0)(2) == 0


def test_points_inside_straight_stretches_are_left_out() -> None:
    assert simplified([(0, 0), (1, 0), (2, 0), (2, 1), (2, 1), (2, 3)]) == [(0, 0), (2, 0), (2, 3)]


def test_a_histogram_starts_and_ends_at_the_axis() -> None:
    x, y = Scale(0, 2, 0, 20), Scale(0, 1, 10, 0)
    assert histogram_outline([0.5, 1.0], [0, 1, 2], x, y) == [(0, 10), (0, 5), (10, 5), (10, 0), (20, 0), (20, 10)]


def test_an_area_is_closed_at_the_bottom() -> None:
    series = Series("blind", "blue", control=False, points=[(40.0, 30.0), (50.0, 20.0)])
    assert series.path == "M40 30L50 20"
    assert series.filled_path == f"M40 30L50 20L50 {BOTTOM:g}L40 {BOTTOM:g}Z"


def test_ticks_of_shares_are_percentages() -> None:
    ticks = share_ticks(y_scale(0, 0.4), 0.4)
    assert [tick.label for tick in ticks] == ["0%", "20%", "40%"]
    assert [ticks[0].at, ticks[-1].at] == [BOTTOM, TOP]
