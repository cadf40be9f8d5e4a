from recollect.palette import PALETTE, assign_colours


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def test_every_colour_is_legible_on_its_background() -> None:
    for colour in PALETTE.values():
        assert contrast(colour.light, "#ffffff") > 3
        assert contrast(colour.dark, "#15171a") > 3


def test_methods_get_what_they_want_and_others_what_is_free() -> None:
    assigned = assign_colours(["green", None, "blue"])
    assert assigned[0] == "green"
    assert assigned[2] == "blue"
    assert assigned[1] not in ("green", "blue")


def test_two_methods_that_want_one_colour_get_two() -> None:
    first, second = assign_colours(["green", "green"])
    assert first == "green"
    assert second != "green"


def test_more_methods_than_colours_share_them() -> None:
    assert set(assign_colours([None] * 20)) == set(PALETTE)
