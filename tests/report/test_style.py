from recollect.palette import HEAT, PALETTE
from recollect.report.style import ASSETS, STYLES, style_sheet


def test_every_colour_of_the_palette_is_defined_for_light_and_dark_screens() -> None:
    light, dark = style_sheet().split("@media screen", 1)
    for name, colour in PALETTE.items():
        assert f"--{name}: {colour.light};" in light
        assert f"--{name}: {colour.dark};" in dark
        assert f".colour-{name} {{ --series: var(--{name}); }}" in dark


def test_every_colour_has_a_marker() -> None:
    page = (ASSETS / "page.html").read_text()
    assert all(f'id="marker-{name}"' in page for name in [*PALETTE, "neutral"])


def test_every_style_sheet_is_used() -> None:
    assert sorted(STYLES) == sorted(path.name for path in ASSETS.glob("*.css"))


def test_the_style_sheet_names_no_colour_of_the_palette_again() -> None:
    css = "".join((ASSETS / name).read_text() for name in STYLES).lower()
    assert not [shade for colour in PALETTE.values() for shade in colour if shade in css]
    assert not [shade for shade in HEAT if shade in css]
