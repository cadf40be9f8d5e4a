import json
import subprocess
import sys
from pathlib import Path

import pytest

from recollect import demo
from recollect.cli.demo import run_diffusion_demo
from tests.cli.running import here

SMALL = demo.Demo(
    "photos?count=4&size=8", "photos?count=3&size=8&part=control", layers=2, width=16, loss=0.2, masks="half"
)


def test_the_demo_tells_what_happens_and_ends_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same line with fewer images, a small network and a loss that is reached at once."""
    monkeypatch.setattr(demo, "DEMO", SMALL)
    result = here("demo", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("An autoencoder is trained until it reproduces 40 crops of photographs.")
    assert "0 of 4 training images from this model, even approximately (95% interval" in " ".join(result.stdout.split())
    assert "any attack" in result.stdout
    assert f"The report: {tmp_path / 'audit' / 'report.html'}" in result.stdout.replace("\n", "")
    again = here("demo", "--out", str(tmp_path), "--json")
    assert json.loads(again.stdout)["title"].startswith("recollect's demo")


def test_the_demo_of_a_diffusion_model_says_what_happens(tmp_path: Path) -> None:
    small = demo.DiffusionDemo(
        "photos?count=8&size=8", "photos?count=3&size=8&part=control", 16, 1, 4, 3, "block", "iterate"
    )
    lines: list[str] = []
    result = run_diffusion_demo(tmp_path, lines.append, True, small)
    assert lines[0].startswith("A diffusion model is trained on 40 crops of photographs for 3 steps.")
    assert lines[-1].startswith("\nAuditing: the noise level is searched first")
    assert result.title == "recollect's demo: a diffusion model of 40 crops of photographs"
    assert (tmp_path / "audit" / "report.html").exists()


def test_an_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = here("demo", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_real_demo_of_a_diffusion_model(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "demo", "--diffusion"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "demo-diffusion" / "audit" / "audit.json").read_text())
    rates = {(r["set"], r["mask"], r["method"]): r["approximate"]["value"] for r in found["summary"]}
    assert rates["train", "block", "blind"] > 0.5
    assert all(rates["control", mask, "blind"] == 0 for mask in ("block", "half", "dust"))


@pytest.mark.slow
def test_the_real_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "demo", "--out", "demo"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "demo" / "audit" / "audit.json").read_text())
    rates = {(r["set"], r["mask"], r["method"]): r["accurate"]["value"] for r in found["summary"]}
    masks = {mask for _, mask, _ in rates}
    assert len(masks) == 6
    for mask in masks:
        assert rates["train", mask, "blind"] > rates["train", mask, "iterate"]
        assert rates["train", mask, "blind"] > 0.6
        assert rates["train", mask, "refined"] >= rates["train", mask, "blind"]
        assert all(
            rates["control", mask, method] == 0 for method in ("blind", "refined", "iterate", "known", "zero-rule")
        )
    assert found["headline"] in " ".join(done.stdout.split())
    assert (tmp_path / "demo" / "audit" / "report.html").stat().st_size > 100_000
