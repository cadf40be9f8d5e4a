import json
from functools import partial
from pathlib import Path

import pytest

from recollect.diffusion import bundled
from recollect.methods.ddnm import STRONGEST
from tests.benchmarks import running
from tests.benchmarks.running import ROOT
from tests.diffusion.making import pictures, train_steps

RECORDS = tuple(str(ROOT / f"results/prior-{size}.json") for size in (32, 64))
run, refused = (partial(function, "prior") for function in (running.run, running.refused))


def test_the_benchmark_runs(tmp_path: Path) -> None:
    """That it runs, and what it says; never how good a prior of a moment is."""
    prior, numbers, restored = (str(tmp_path / name) for name in ("prior", "numbers.json", "restored.npz"))
    train_steps(pictures(), Path(prior))
    shown = run(
        "--prior", prior, "--masks", "scatter,stripes", "--images", "photos?count=3&size=8",
        "--settings", "5,0.85,even,1", "4,1,quadratic,2", "--json", numbers, "--save", restored,
    )  # fmt: skip
    assert "trained on pictures-0; of these images it knows none of 3" in shown
    methods = ["ddnm, 5 even steps, eta 0.85", "ddnm, 4 quadratic steps, eta 1, mean of 2"]
    psnr = json.loads(Path(numbers).read_text())["psnr"]
    assert list(psnr) == ["scatter", "stripes"]
    assert all(list(row) == [*methods, "biharmonic"] for row in psnr.values())
    assert run("--tables", numbers) in shown
    assert shown.count("ahead of biharmonic by") == 2
    assert Path(restored).exists()


def test_a_record_is_extended_by_what_another_machine_measures(tmp_path: Path) -> None:
    prior, numbers = (str(tmp_path / name) for name in ("prior", "numbers.json"))
    train_steps(pictures(), Path(prior))
    given = ("--masks", "stripes", "--images", "photos?count=2&size=8", "--json", numbers)
    run("--prior", prior, "--methods", "ddnm", "--settings", "2,1,even,1", *given)
    first = json.loads(Path(numbers).read_text())
    run("--methods", "biharmonic", *given)
    both = json.loads(Path(numbers).read_text())
    assert list(both["psnr"]["stripes"]) == ["ddnm, 2 even steps, eta 1", "biharmonic"]
    same = {**both, "psnr": None, "psnr_of_each": None}
    assert same == {**first, "psnr": None, "psnr_of_each": None}
    apart = str(tmp_path / "apart.json")
    given = (*given[:-1], apart)
    run("--methods", "biharmonic", *given)
    run("--prior", prior, "--methods", "ddnm", "--settings", "2,1,even,1", *given, "--masks", "scatter")
    shown = run("--tables", apart)
    assert "trained on pictures-0" in json.loads(Path(apart).read_text())["prior"]
    assert "| biharmonic |" in shown
    assert "| - |" in shown  # a mask that a method was not tried on
    assert "other images or another prior" in refused("--methods", "biharmonic", *given, "--count", "1")


def test_the_page_shows_the_recorded_numbers() -> None:
    page = (ROOT / "docs/concepts/generic-baseline.md").read_text()
    for line in run("--tables", RECORDS[0]).splitlines():
        assert line in page


def test_the_numbers_on_record_are_of_the_weights_that_are_bundled() -> None:
    assert bundled().weights_hash in json.loads((ROOT / RECORDS[0]).read_text())["prior"]


@pytest.mark.parametrize(("record", "draws"), [(RECORDS[0], STRONGEST["draws"]), (RECORDS[1], 2)])
def test_a_prior_beats_a_simple_method_where_it_should(record: str, draws: int) -> None:
    """In saved runs, at the settings of an audit, or with fewer draws than those."""
    assert draws <= STRONGEST["draws"]
    psnr = json.loads((ROOT / record).read_text())["psnr"]
    audits = "ddnm, {steps} {spacing} steps, eta {eta:g}, mean of {draws}".format(**{**STRONGEST, "draws": draws})
    for mask in ("scatter", "stripes"):
        assert psnr[mask][audits] > psnr[mask]["biharmonic"]


def test_mistakes_are_told_in_a_sentence() -> None:
    for given, words in (
        (["--settings", "5,1,even"], "invalid ddnm_settings value"),
        (["--prior", "./nowhere"], "There is no folder"),
        (["--tables", str(ROOT / "results/speed-cpu.json")], "was not written by this benchmark"),
    ):
        assert words in refused("--images", "photos?count=1&size=8", *given)
