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
from recollect.degradation import PAPER_MASKS
from recollect.paper.render.tables import percent
from recollect.paper.store import Store
from recollect.records import Record
from tests.auditing.making import images, small_audit
from tests.benchmarks.running import benchmark
from tests.cli.running import here
from tests.committed import committed_records
from tests.planted import Memorizer

readme_picture = benchmark("readme_picture")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FULL = ROOT / "results" / "paper" / "full"
TRAININGS = {
    "FC-10, Adam": "fc10-lrelu-adam-tiny600",
    "FC-10, Muon": "fc10-lrelu-muon-tiny600",
    "U-Net, Muon": "unet-softplus-muon-svhn50",
}
METHODS = ("iterate", "blind", "refined", "known")


def counts(text: str) -> dict[str, list[int]]:
    """The images that each method recovers, of the training and the unseen ones: {"blind": [40, 0], ...}."""
    rows = re.findall(r"^([a-z][a-z() -]*?) +(\d+) of \d+ \(.*?\) +(\d+) of \d+", text, re.M)
    return {name: [int(training), int(unseen)] for name, training, unseen in rows}


def block(word: str) -> str:
    """The README's Python block that has this word in it."""
    return next(code for code in re.findall(r"```python\n(.*?)```", README, re.S) if word in code)


def full_scale(set_name: str) -> dict[tuple[str, str, str], Record]:
    """The committed records of these trainings at the last loss, by training, method and mask."""
    records = [r for r in committed_records("full") if r.cell.get("training") in TRAININGS.values()]
    wanted = [r for r in records if r.cell["set"] == set_name and r.cell["loss"] == "1e-08" and "noise" not in r.cell]
    return {(r.cell["training"], r.cell["method"], r.cell["mask"]): r for r in wanted}


def full_scale_rows() -> list[str]:
    """The README's table, from the records alone."""
    records = full_scale("train")
    rows = []
    for network, training in TRAININGS.items():
        for method in METHODS:
            shares = [percent(records[training, method, mask].score.accurate) for mask in PAPER_MASKS]
            rows.append(f"| {network} | {method} | {' | '.join(shares)} |")
    return rows


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_make_targets_it_names_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"demo", "test", "docs"} <= set(re.findall(r"make ([a-z-]+)(?:  |`)", README)) <= targets


def test_the_full_scale_table_is_what_the_records_say() -> None:
    table = README.split("| network | method |")[1].split("\n\n")[0]
    assert [line for line in table.splitlines() if line.startswith(("| FC-10", "| U-Net"))] == full_scale_rows()


def test_the_sentences_around_it_are_what_the_records_say() -> None:
    control = full_scale("control")
    assert {(t, m, k) for t in TRAININGS.values() for m in METHODS for k in PAPER_MASKS} <= set(control)
    assert all(r.score.approximate.count == 0 for r in control.values())
    for (training, _, _), record in (control | full_scale("train")).items():
        assert len(record.mse) == (50 if "unet" in training else 600)
    trainings = [t for t in Store(FULL).trainings() if t["training"] in TRAININGS.values()]
    adam, muon, unet = (round(t["seconds"]) for t in trainings)
    words = " ".join(README.split())
    assert f"with Adam in {adam} s and with Muon in {muon} s" in words
    assert f"on 50 SVHN images in {unet} s." in words
    assert all(t["loss"] <= 1e-8 for t in trainings)
    assert [t["fit"]["width"] for t in trainings[:2]] == [1024, 1024]


def test_the_rates_of_many_images_are_what_the_records_say() -> None:
    words = " ".join(README.split())
    records = [r for r in committed_records("full") if r.cell["set"] == "train"]
    for training, method, gamma, numbers in (
        ("fc20-lrelu-muon-tiny25000", "blind", None, "{}, {} and {}% approximately under block, half and stripes"),
        ("fc20-lrelu-muon-tiny25000", "refined", "gamma-1", "refined {}, {} and {}% at a gamma of 1"),
        ("unet-softplus-muon-cifar1000", "blind", None, "{}, {} and {}% (50.3, 75.9, 22.9)"),
    ):
        wanted = [r for r in records if (r.cell.get("training"), r.cell["method"]) == (training, method)]
        by_mask = {r.cell["mask"]: percent(r.score.approximate) for r in wanted if r.cell.get("gamma") == gamma}
        assert numbers.format(*(by_mask[mask] for mask in ("block", "half", "stripes"))) in words
        (facts,) = [facts for facts in Store(FULL).trainings() if facts["training"] == training]
        assert f"trained in {facts['milestones'][-1]['seconds']:.0f} s" in words
    generic = {"ddnm": 0.0, "biharmonic": 0.0}
    for record in records:
        if record.cell.get("images") == "cifar1000":
            method = record.cell["method"]
            generic[method] = max(generic[method], float(percent(record.score.approximate)))
    assert f"restores {generic['ddnm']}% at most, biharmonic inpainting {generic['biharmonic']}%" in words


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
    folder = small_audit(methods="blind,iterate").save(tmp_path / "audit")
    readme_picture.main(str(folder), str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    command = next(line for line in README.splitlines() if "benchmarks/readme_picture.py" in line)
    assert command.strip("`.") in f"    {readme_picture.__doc__}"


@pytest.mark.slow
def test_the_demo_prints_the_table_it_shows(tmp_path: Path) -> None:
    """On another machine rounding may move a few images of the forty."""
    command = [sys.executable, "-m", "recollect", "demo", "--out", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown, found = counts(README), counts(printed)
    assert len(shown) == 6
    for method, recovered in shown.items():
        assert found[method] == pytest.approx(recovered, abs=3), method


@pytest.mark.slow
def test_its_library_example_runs() -> None:
    done = subprocess.run([sys.executable, "-c", block("train_to_loss")], capture_output=True, text=True, check=True)
    assert "converged" in done.stdout
