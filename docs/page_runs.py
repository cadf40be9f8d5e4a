"""Run the code of the tutorials, and write what it prints and draws into docs/.

    python docs/page_runs.py

A page shows its output behind `print(...)  # ` or in a block below the code. Lines and pictures are written only where
they differ from what is shown. Counts that rounding decides differ from one CPU to another and are left alone. A page
is run again when its source or the package has changed.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path

import numpy as np
from notebook_runs import key_of
from skimage.io import imread

ROOT = Path(__file__).parents[1]
DOCS, RUNS = ROOT / "docs", ROOT / "build" / "pages"
TUTORIALS = {"guide/quickstart": {"recovered.png": "figures/quickstart.png"}, "guide/audit-your-model": {}}
BLOCK = re.compile(r"^```(python|)\n(.*?)^```$", re.S | re.M)
SHOWN = re.compile(r"^(print\(.*\)  # )(.*)$", re.M)
DECIDED_BY_ROUNDING = r"(?<=ended at )\d+|(?<=iterate, train: ).*"
SAME_PICTURE = 2.0  # mean difference in grey levels, below which fonts and rounding differ and nothing else


def run(code: str, names: dict[str, object], place: str = "page") -> list[str]:
    """Run a block of code with the names of those before it, and return the lines that it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, place, "exec", dont_inherit=True), names)
    return printed.getvalue().splitlines()


def with_outputs(text: str) -> str:
    """Run the Python blocks of a page one after another, as a reader would, and show what they print."""
    names: dict[str, object] = {"__name__": "page"}
    lines: list[str] = []

    def shown(block: re.Match[str]) -> str:
        nonlocal lines
        language, body = block[1], block[2]
        if language:
            lines = run(body, names)
            left = iter(lines)
            body = SHOWN.sub(lambda line: line[1] + steady(line[2], next(left)), body)
        else:
            body = "".join(f"{line}\n" for line in all_steady(body.splitlines(), lines))
        return f"```{language}\n{body}```"

    return BLOCK.sub(shown, text)


def all_steady(before: list[str], now: list[str]) -> Iterator[str]:
    """Choose between the lines of a block that was shown and those that are printed."""
    if len(before) != len(now):
        yield from now
        return
    for old, new in zip(before, now, strict=True):
        yield steady(old, new)


def steady(before: str, now: str) -> str:
    """Keep a line that differs in counts alone that rounding decides."""
    return before if without_counts(before) == without_counts(now) else now


def without_counts(line: str) -> str:
    return re.sub(DECIDED_BY_ROUNDING, "...", line)


def look_alike(one: Path, other: Path) -> bool:
    """Compare two pictures by eye's measure."""
    if not other.exists():
        return False
    pixels = [imread(path).astype(float)[..., :3] for path in (one, other)]
    return pixels[0].shape == pixels[1].shape and float(np.abs(pixels[0] - pixels[1]).mean()) < SAME_PICTURE


def write(page: str, pictures: dict[str, str], docs: Path = DOCS) -> None:
    """Run a page in an empty folder, and write its outputs and pictures."""
    source = docs / f"{page}.md"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        text = with_outputs(source.read_text(encoding="utf-8"))
        for drawn, kept in pictures.items():
            if not look_alike(Path(drawn), docs / kept):
                shutil.copy(drawn, docs / kept)
    if text != source.read_text(encoding="utf-8"):
        source.write_text(text, encoding="utf-8")


def main() -> None:
    os.environ.setdefault("MPLBACKEND", "agg")
    for page, pictures in TUTORIALS.items():
        source, stamp = DOCS / f"{page}.md", RUNS / Path(page).name
        if not stamp.exists() or stamp.read_text() != key_of(source):
            write(page, pictures)
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_text(key_of(source))
        sys.stdout.write(f"{page}: its outputs are those of its code\n")


if __name__ == "__main__":
    main()
