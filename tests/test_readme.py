"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def rates(text: str) -> dict[str, list[int]]:
    """The table's numbers by row: {"block": [98, 100, ...], ...}, of the first table in a text."""
    rows: dict[str, list[int]] = {}
    for line in text.splitlines():
        if (match := re.match(r"([a-z]+(?:,? [a-z]+)*?)((?: +\d+ / \d+)+)$", line)) and match[1] not in rows:
            rows[match[1]] = [int(n) for n in re.findall(r"\d+", match[2])]
    return rows


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_make_targets_it_names_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"make ([a-z-]+)  ", README)) <= targets


@pytest.mark.slow
def test_the_demo_prints_the_table_it_shows(tmp_path: Path) -> None:
    """On another machine rounding may move an image or two of the forty."""
    command = [sys.executable, "-m", "recollect", "demo", "--out", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown, found = rates(README), rates(printed.split("All methods")[1])
    assert shown
    for row, numbers in shown.items():
        assert found[row] == pytest.approx(numbers, abs=7.5), row


@pytest.mark.slow
def test_its_library_example_runs() -> None:
    code = next(block for block in re.findall(r"```python\n(.*?)```", README, re.S) if "train_to_loss" in block)
    assert (
        "converged" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
