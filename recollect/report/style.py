"""The page's style sheet: report.css with the colours of recollect.palette written into it."""

from __future__ import annotations

from pathlib import Path

from recollect.palette import HEAT, PALETTE

ASSETS = Path(__file__).parent / "assets"
STYLES = ("base.css", "summary.css", "rates.css", "gallery.css", "curves.css", "evidence.css", "phone.css", "print.css")


def style_sheet() -> str:
    return _colours() + "\n".join((ASSETS / name).read_text("utf-8") for name in STYLES)


def _colours() -> str:
    """Define every colour for light and dark screens, and a class that draws a method in it."""
    light = "".join(f"--{name}: {colour.light}; " for name, colour in PALETTE.items())
    dark = "".join(f"--{name}: {colour.dark}; " for name, colour in PALETTE.items())
    classes = "".join(f".colour-{name} {{ --series: var(--{name}); }}\n" for name in PALETTE)
    heat = f"--heat: linear-gradient(90deg, {', '.join(HEAT)});"
    on_dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}"
    return f":root {{ {light}{heat} }}\n{on_dark}\n{classes}"
