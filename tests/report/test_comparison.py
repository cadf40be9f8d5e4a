import numpy as np
import pytest

from recollect.report.comparison import draw_comparison

DOTS_OF_BLUE = (0, 0, 255)


def samples(*sets: str, side: int = 8) -> dict[str, np.ndarray]:
    """Pictures of five images of each set: given red, recovered green, original blue."""
    drawn = {}
    for name in sets:
        for channel, key in enumerate((f"degraded/{name}/half", f"estimate/{name}/half/blind", f"original/{name}")):
            drawn[key] = np.zeros((5, side, 2 * side, 3), np.uint8)
            drawn[key][..., channel] = 255
    return drawn


def colours(picture: object) -> list[tuple[int, ...]]:
    """The colours from top to bottom in a column that crosses the first image."""
    pixels = np.asarray(picture.convert("RGB"))  # type: ignore[attr-defined]
    column = pixels[:, 100]
    changes = [tuple(int(value) for value in dot) for dot in column if dot.max() == 255 and dot.sum() == 255]
    return list(dict.fromkeys(changes))


def test_rows_are_given_recovered_and_original() -> None:
    picture = draw_comparison(samples("train", "control"), "half", "blind")
    assert colours(picture) == [(255, 0, 0), (0, 255, 0), DOTS_OF_BLUE]


@pytest.mark.parametrize(("sets", "count", "columns"), [(("train",), 2, 2), (("train", "control"), 4, 8)])
def test_a_picture_is_as_wide_as_it_has_columns(sets: tuple[str, ...], count: int, columns: int) -> None:
    picture = draw_comparison(samples(*sets), "half", "blind", count)
    rows = np.asarray(picture.convert("RGB"))
    (blue,) = np.nonzero((rows == DOTS_OF_BLUE).all(2).any(1))
    row = rows[int(np.median(blue))]
    starts = (row[1:] == DOTS_OF_BLUE).all(1) & ~(row[:-1] == DOTS_OF_BLUE).all(1)
    assert starts.sum() == columns


def test_there_are_no_more_columns_than_images() -> None:
    few, many = (draw_comparison(samples("train"), "half", "blind", count) for count in (5, 50))
    assert few.size == many.size
