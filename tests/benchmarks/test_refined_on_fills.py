import json
from pathlib import Path

import pytest
import torch

from recollect import load
from tests.benchmarks.running import benchmark, refused, run

cases, tables = benchmark("refined_cases"), benchmark("refined_tables")


def test_a_dry_run_measures_a_plant_once(tmp_path: Path) -> None:
    """That it runs on a toy, and what it says; never how well."""
    out, threads = tmp_path / "numbers.json", str(torch.get_num_threads())
    arguments = (
        "--set", "reported", "--small", "--cases", "sharp plant", "--cache", str(tmp_path / "cache"), "--json",
        str(out), "--device", "cpu", "--threads", threads,
    )  # fmt: skip
    printed = run("refined_on_fills", *arguments)
    numbers = json.loads(out.read_text())
    assert [(row["set"], row["fill"]) for row in numbers["rows"]] == [
        ("train", "zero"), ("train", "noise"), ("unseen", "zero"), ("unseen", "noise")
    ]  # fmt: skip
    assert "refined below blind or iterate: 0 of 2 cells" in printed
    grid = [tried["gamma"] for tried in numbers["gammas"]["sharp plant"]["grid"]]
    assert numbers["gammas"]["sharp plant"]["chosen"] in grid
    assert len(grid) > 1

    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert run("refined_on_fills", *arguments).splitlines()[-1] == printed.splitlines()[-1]
    assert kept == {path: path.stat().st_mtime_ns for path in kept}  # nothing is measured again


def test_a_case_that_is_not_there_is_refused(tmp_path: Path) -> None:
    paths = ("--cache", str(tmp_path), "--json", str(tmp_path / "numbers.json"))
    assert "there is no case 'fc99'" in refused("refined_on_fills", "--set", "validation", "--cases", "fc99", *paths)


def test_the_two_collections_share_nothing_but_black() -> None:
    one, other = cases.VALIDATION, cases.REPORTED
    assert not set(one.masks) & set(other.masks)
    assert set(one.fills) & set(other.fills) == {"zero"}
    assert not {case.seed for case in one.cases.values()} & {case.seed for case in other.cases.values()}
    drawn = [
        {
            name
            for case in collection.cases.values()
            for part in cases.images_of(case, collection, None, True)
            for name in part.ids
        }
        for collection in (one, other)
    ]
    assert not drawn[0] & drawn[1]


@pytest.mark.parametrize("fill", list(cases.FILL_VALUES))
def test_erased_pixels_hold_the_fill(fill: str) -> None:
    images = load("photos?count=4&size=8")
    damaged = cases.damage(images, ("half", "block"), (fill,), seed=0)
    kept = damaged.truth.keep
    values = cases.FILL_VALUES[fill](images.pixels, 0).expand_as(images.pixels).repeat(2, 1, 1, 1)
    assert torch.equal(damaged.y[kept], damaged.images.pixels[kept])
    assert torch.equal(damaged.y[~kept], values[~kept])
    assert damaged.cells == [("half", fill), ("block", fill)]


def test_a_cell_is_below_if_either_attack_recovers_more() -> None:
    cells = [{"blind": 1, "iterate": 2, "refined": 2}, {"blind": 3, "iterate": 0, "refined": 2}]
    assert tables.below([{"accurate": cell} for cell in cells]) == 1


def test_the_chosen_gamma_is_compared_with_the_best() -> None:
    grid = [{"gamma": 0.1, "accurate": 0.5}, {"gamma": 1.0, "accurate": 0.75}]
    printed = tables.gammas({"a": {"chosen": 0.1, "grid": grid}, "b": {"chosen": 1.0, "grid": grid}})
    assert printed.endswith("behind the best gamma: 12.5 points on average, 25.0 at worst")
