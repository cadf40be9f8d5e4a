"""The code on the pages runs as it stands, and links lead somewhere."""

import re
from pathlib import Path

import matplotlib
import pytest

from recollect.version import __version__

ROOT = Path(__file__).parents[2]
RUN = ("tutorial", "own-model", "signals-and-rows", "adding-a-degradation", "adding-a-method", "paper")
WRITTEN = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def run(page: str) -> dict[str, object]:
    """All Python blocks of a page, one after another as a reader would; the names that are left."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, f"docs/{page}.md", "exec", dont_inherit=True), names)
    return names


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("tutorial")
    score, result = names["score"], names["result"]
    assert score.accurate.value > 0.5  # type: ignore[attr-defined]
    assert result.rate("control", "any mask", "blind").count == 0  # type: ignore[attr-defined]
    assert (tmp_path / "recovered.png").stat().st_size > 5_000
    assert (tmp_path / "audit" / "report.html").exists()
    printed = capsys.readouterr().out
    assert "50.0% erased" in printed
    assert "control: 0.0%" in printed


def test_auditing_your_own_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("diffusers")
    run("own-model")
    printed = capsys.readouterr().out
    assert "say which is the image with output='sample'" in printed
    assert "This model reproduces 0 of 8 training images" in printed
    assert "far from a fit" in printed
    assert (tmp_path / "audit" / "audit.json").exists()


def test_signals_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    run("signals-and-rows")
    assert "This model reproduces 12 of 12 training rows" in capsys.readouterr().out


def test_adding_a_degradation(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("adding-a-degradation")
    assert "This model reproduces 5 of 6 training images" in capsys.readouterr().out
    assert names["result"].masks == ["dimmed"]  # type: ignore[attr-defined]


def test_adding_a_method() -> None:
    assert run("adding-a-method")["result"].methods == ["iterate", "averaged"]  # type: ignore[attr-defined]


def test_the_paper_explained() -> None:
    run("paper")  # it asserts what it says


def test_canaries(capsys: pytest.CaptureFixture[str]) -> None:
    run("canaries")
    page = " ".join((ROOT / "docs" / "canaries.md").read_text().split())
    assert capsys.readouterr().out.strip() in page


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_links_to_files_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
