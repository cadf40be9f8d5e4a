"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recollect import FullyConnected
from recollect.checkpoints import save_checkpoint
from recollect.paper.scales import FULL
from tests.auditing.making import images, small_audit
from tests.benchmarks.running import benchmark
from tests.cli.running import here
from tests.committed import committed_records
from tests.planted import Memorizer

paper_figure, readme_picture = benchmark("paper_figure"), benchmark("readme_picture")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def counts(text: str) -> dict[str, list[int]]:
    """The images that each method recovers, of the training and the unseen ones: {"blind": [40, 0], ...}."""
    rows = re.findall(r"^([a-z][a-z() -]*?) +(\d+) of \d+ \(.*?\) +(\d+) of \d+", text, re.M)
    return {name: [int(training), int(unseen)] for name, training, unseen in rows}


def block(word: str) -> str:
    """The README's Python block that has this word in it."""
    return next(code for code in re.findall(r"```python\n(.*?)```", README, re.S) if word in code)


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_make_targets_it_names_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"demo", "test", "docs"} <= set(re.findall(r"make ([a-z-]+)(?:  |`)", README)) <= targets


def test_no_unseen_image_was_recovered_from_the_networks_of_the_chart() -> None:
    trainings = {experiment.cells(FULL)[0].fit.name for experiment in paper_figure.PANELS.values()}
    unseen = [
        r for r in committed_records("full") if r.cell["set"] == "control" and r.cell.get("training") in trainings
    ]
    attacks = [r for r in unseen if r.cell["method"] in ("blind", "refined")]
    assert {(r.cell["training"], r.cell["method"]) for r in attacks} == {
        (training, method) for training in trainings for method in ("blind", "refined")
    }
    assert all(r.score.approximate.count == 0 for r in attacks)


def test_the_chart_beside_the_paper_is_what_the_records_say(tmp_path: Path) -> None:
    paper_figure.main(str(tmp_path / "paper.svg"))
    labels = re.compile(r"<!-- (.*?) -->")
    drawn, committed = ((f / "paper.svg").read_text() for f in (tmp_path, ROOT / "docs" / "figures"))
    assert labels.findall(drawn) == labels.findall(committed), (
        "run: python benchmarks/paper_figure.py docs/figures/paper.svg"
    )


def test_the_six_lines_of_an_audit_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand, with a model and images in the names that they use; settings are searched, as for any model."""
    monkeypatch.chdir(tmp_path)
    stored = images(8, 1)
    lines = block("recollect.audit(")
    assert len([line for line in lines.splitlines() if line.strip()]) <= 6
    exec(lines, {"model": Memorizer(stored.pixels), "images": stored, "others": images(6, 2)})
    assert {"audit.json", "images.csv", "report.html"} <= {path.name for path in (tmp_path / "audit").iterdir()}


def test_the_audit_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_checkpoint(tmp_path / "net.safetensors", FullyConnected((3, 8, 8), layers=2, width=8), {})
    line = next(line for line in README.splitlines() if line.startswith("    recollect audit MODEL"))
    for name, value in (
        ("MODEL", "net.safetensors"), ("SOURCE", "'photos?count=3&size=8'"),
        ("SOURCE", "'photos?count=3&size=8&part=control'"),
    ):  # fmt: skip
        line = line.replace(name, value, 1)
    result = here(*shlex.split(line)[1:], "--masks", "half")
    assert result.exit_code == 4, result.output  # an untrained network: the gate cannot decide
    assert (tmp_path / "audit" / "report.html").exists()


def test_the_picture_is_drawn_from_an_audit(tmp_path: Path) -> None:
    folder = small_audit(methods="refined").save(tmp_path / "audit")
    readme_picture.main(str(folder), str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_demo_prints_the_table_it_shows(tmp_path: Path) -> None:
    """Line for line, but for counts: on another machine rounding may move a few images of the forty."""
    command = [sys.executable, "-m", "recollect", "demo", "--out", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (table,) = re.findall(r"^```\n(Recovered under .*?)^```", README, re.S | re.M)
    text = without_counts(printed)
    assert [line for line in table.splitlines() if without_counts(line) not in text] == []
    shown, found = counts(README), counts(printed)
    assert len(shown) == 2
    for method, recovered in shown.items():
        assert found[method] == pytest.approx(recovered, abs=3), method


def without_counts(line: str) -> str:
    """Replace the numbers of recovered images and their intervals, and join lines that a terminal breaks."""
    plain = re.sub(r"\d+ of (\d+)(?: \([\d-]+%\))?", r"N of \1", line)
    return " ".join(re.sub(r"interval [\d-]+%", "interval", plain).split())
