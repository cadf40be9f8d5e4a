from collections.abc import Mapping

from recollect.methods import METHODS, Method
from recollect.palette import PALETTE
from recollect.paper.render.draw import (
    LOSS,
    PERCENT,
    Series,
    Style,
    grid_figure,
    loss_styles,
    method_styles,
    series_figure,
    short,
)
from recollect.paper.render.panels import Panel, Point

LINE = [Point(1e-4, 50.0, 40.0, 60.0), Point(1e-8, 90.0, 80.0, 95.0)]


def test_a_method_has_the_colour_and_the_label_that_it_names() -> None:
    styles = method_styles()
    assert list(styles) == list(METHODS)
    for name in ("blind", "refined", "iterate", "known"):
        assert styles[name].colour == PALETTE[METHODS[name].colour or ""].light
        assert styles[name].label == METHODS[name].label


def test_methods_differ_in_print_without_colour() -> None:
    assert look_alike(method_styles()) == []


def test_methods_of_other_packages_differ_too() -> None:
    styles = method_styles({**METHODS, **{f"other-{number}": Method for number in range(20)}})
    assert len(styles) == len(METHODS) + 20
    assert look_alike(styles) == []


def look_alike(styles: Mapping[str, Style]) -> list[str]:
    """Name the methods with the marker and the dashes of an earlier one."""
    seen: set[tuple[str, str]] = set()
    repeated = []
    for name, style in styles.items():
        if (style.marker, str(style.dashes)) in seen:
            repeated.append(name)
        seen.add((style.marker, str(style.dashes)))
    return repeated


def test_the_legend_names_the_methods_that_have_a_line() -> None:
    panels = [Panel({"iterate": LINE}), Panel({"blind": LINE}), Panel({})]
    (legend,) = grid_figure({"row": panels}, ["a", "b", "c"], LOSS, PERCENT).legends
    assert [text.get_text() for text in legend.get_texts()] == [METHODS["blind"].label, METHODS["iterate"].label]


def test_only_the_outermost_panels_with_lines_are_numbered() -> None:
    full, empty = Panel({"blind": LINE}), Panel({})
    figure = grid_figure({"first": [empty, full, full], "second": [full, full, empty]}, ["a", "b", "c"], LOSS, PERCENT)
    (_, upper_middle, upper_right), (lower_left, lower_middle, _) = figure.axes[:3], figure.axes[3:]
    left = {ax: ax.yaxis.get_tick_params()["labelleft"] for ax in figure.axes}
    bottom = {ax: ax.xaxis.get_tick_params()["labelbottom"] for ax in figure.axes}
    assert (left[upper_middle], left[upper_right]) == (True, False)
    assert (left[lower_left], left[lower_middle]) == (True, False)
    assert (bottom[upper_middle], bottom[upper_right], bottom[lower_left]) == (False, True, True)


def test_a_row_without_lines_is_left_out() -> None:
    figure = grid_figure({"empty": [Panel({})], "full": [Panel({"blind": LINE})]}, ["a"], LOSS, PERCENT)
    assert [ax.get_ylabel() for ax in figure.axes] == ["full"]


def test_losses_have_shades_that_no_method_has() -> None:
    styles = loss_styles([1e-2, 1e-3, 1e-4, 1e-8])
    assert [style.label for style in styles.values()] == ["loss 1e-2", "loss 1e-3", "loss 1e-4", "loss 1e-8"]
    shades = {style.colour for style in styles.values()}
    assert len(shades) == 4
    assert not shades & {shade for colour in PALETTE.values() for shade in colour}


def test_the_legend_of_series_names_the_lines_that_are_drawn() -> None:
    styles = loss_styles([1e-2, 1e-4])
    panels = [Series(title, LOSS, {short(1e-4): LINE}) for title in "abc"]
    stacked = series_figure(panels, styles, PERCENT, "title")
    (legend,) = stacked.legends
    assert [text.get_text() for text in legend.get_texts()] == ["loss 1e-4"]
    assert [ax.get_title("left") for ax in stacked.axes] == ["a", "b", "c"]
    in_columns = series_figure(panels, styles, PERCENT, "title", columns=2)
    assert not in_columns.legends  # it is in the cell that is left
    assert in_columns.axes[-1].get_legend()


def test_markers_grow_along_a_path() -> None:
    style = Style("black", "o", "-", "path", is_path=True)
    figure = series_figure([Series("a", LOSS, {"path": LINE})], {"path": style}, PERCENT, "title")
    sizes = [list(drawn.get_sizes()) for drawn in figure.axes[0].collections if hasattr(drawn, "get_sizes")]
    assert [size for size in sizes if len(size) == 2 and size[0] < size[1]]
