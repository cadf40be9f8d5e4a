"""Tutorials show what their code prints and draws."""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # as Python does for a script of this folder

import page_runs  # noqa: E402

PAGE = """```python
a = 2
print(a + 1)  # {comment}
```

```python
print("one")
print("attacks ended at", a, "of its images")
```

```
{first}
attacks ended at 7 of its images
```
"""


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_outputs_are_written_where_they_differ() -> None:
    right = PAGE.format(comment="3", first="one")
    assert page_runs.with_outputs(PAGE.format(comment="4", first="two")) == right
    assert page_runs.with_outputs(right) == right  # the count is one that rounding decides


def test_more_lines_than_are_shown_are_written() -> None:
    page = "```python\nprint(1)\nprint(2)\n```\n\n```\n1\n```\n"
    assert page_runs.with_outputs(page).endswith("```\n1\n2\n```\n")


def test_a_page_is_written_with_its_picture(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "page.md").write_text(
        "```python\nfrom PIL import Image\nImage.new('RGB', (2, 2)).save('drawn.png')\nprint(5)  # 4\n```\n"
    )
    page_runs.write("page", {"drawn.png": "kept.png"}, docs)
    assert "print(5)  # 5" in (docs / "page.md").read_text()
    assert (docs / "kept.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_that_differ_are_told_apart(tmp_path: Path) -> None:
    names = ("one", "same", "other")
    paths = [tmp_path / f"{name}.png" for name in names]
    for path, value in zip(paths, (100, 101, 120), strict=True):
        Image.fromarray(np.full((4, 4, 3), value, np.uint8)).save(path)
    assert page_runs.look_alike(paths[0], paths[1])
    assert not page_runs.look_alike(paths[0], paths[2])
    assert not page_runs.look_alike(paths[0], tmp_path / "missing.png")


@pytest.mark.parametrize("page", page_runs.TUTORIALS)
def test_a_tutorial_shows_what_its_code_prints_and_draws(page: str, tmp_path: Path) -> None:
    if page == "guide/audit-your-model":
        pytest.importorskip("diffusers")
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert page_runs.with_outputs(text) == text
    for drawn, kept in page_runs.TUTORIALS[page].items():
        assert page_runs.look_alike(tmp_path / drawn, ROOT / "docs" / kept)
    assert (tmp_path / "audit" / "report.html").exists()
