import json
from pathlib import Path
from typing import Any

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
    assert "refined below blind or iterate: 0 of 2 cells (accurate) and 0 of 2 cells (approximate)" in printed
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


@pytest.mark.parametrize("threshold", ["accurate", "approximate"])
def test_a_cell_is_below_if_either_attack_recovers_more(threshold: str) -> None:
    cells = [{"blind": 1, "iterate": 2, "refined": 2}, {"blind": 3, "iterate": 0, "refined": 2}]
    all_equal = dict.fromkeys(("blind", "iterate", "refined"), 1)
    rows = [{**dict.fromkeys(tables.THRESHOLDS, all_equal), threshold: cell} for cell in cells]
    assert [tables.below(rows, what) for what in tables.THRESHOLDS].count(1) == 1
    assert tables.below(rows, threshold) == 1


def test_the_chosen_gamma_is_compared_with_the_best() -> None:
    def network(chosen: float, best: float = 0.75) -> dict[str, Any]:
        rates = {"accurate": 1.0, "approximate": 1.0, "fixed_point_error": 1e-9}
        grid = [{"gamma": 1.0, "accurate": best}, {"gamma": 0.01, "accurate": 2 / 3 * best}]
        return {"tuning": [{"gamma": chosen, "start": "half_kept", "masks": 1, **rates}], "grid": grid}

    printed = tables.gammas({"a": network(0.1), "b": network(1.0), "c": network(1.0, best=0.0)})
    assert "| a | 0.1 | 62.5 | 1 | 75.0 | 12.5 | 2 |" in printed
    assert "behind the best gamma: 6.2 points on average, 12.5 at worst, on 2 networks" in printed
