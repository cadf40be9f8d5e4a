import pytest
import torch

from recollect import InputError
from recollect.auditing.statistics import MEASURE_OF_DIFFICULTY, Statistics, cost_rows, pooled, rate_facts, tables
from recollect.methods import Biharmonic
from recollect.records import Record
from recollect.scoring import Rate, Score


def score(*errors: float) -> Score:
    return Score(torch.tensor(errors, dtype=torch.float64).numpy())


def test_images_whose_masks_all_agree_are_worth_one_try_each() -> None:
    hit_or_miss = [score(0, 0, 0, 1)] * 6
    found = pooled(hit_or_miss, 0.5)
    assert (found.count, found.total) == (18, 24)
    assert found.interval == pytest.approx(Rate(3, 4).interval, abs=0.02)
    assert found.interval[1] - found.interval[0] > 1.5 * (Rate(18, 24).interval[1] - Rate(18, 24).interval[0])


def test_masks_that_have_nothing_to_do_with_each_other_are_worth_a_try_each() -> None:
    draws = torch.rand(6, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = pooled([Score(row) for row in draws], 0.3)
    assert found.interval == pytest.approx(Rate(found.count, found.total).interval, abs=1e-3)


def test_the_interval_of_all_masks_holds_the_truth_as_often_as_it_says() -> None:
    """Images differ in how easily they are recovered: the plain interval would miss far too often."""
    generator = torch.Generator().manual_seed(0)
    covered = plain = 0
    for _ in range(400):
        easy = torch.rand(40, generator=generator) < 0.5
        hits = torch.rand(6, 40, generator=generator) < torch.where(easy, 0.9, 0.1)
        found = pooled([Score((~row).double()) for row in hits], 0.5)
        covered += found.interval[0] <= 0.5 <= found.interval[1]
        low, high = Rate(found.count, found.total).interval
        plain += low <= 0.5 <= high
    assert covered / 400 > 0.92
    assert plain / 400 < 0.85


@pytest.mark.parametrize("error", [0.0, 1.0])
def test_all_or_none_keep_the_interval_of_the_images(error: float) -> None:
    found = pooled([score(error, error, error)] * 5, 0.5)
    assert found.interval == Rate(3 * (error == 0), 3).interval
    assert pooled([score(error)], 0.5).interval == Rate(int(error == 0), 1).interval


def test_facts_of_a_rate_stand_by_themselves() -> None:
    facts = rate_facts(Rate(1, 4))
    assert (facts["count"], facts["total"], facts["value"]) == (1, 4, 0.25)
    assert facts["low"] < 0.25 < facts["high"]


def record(errors: list[float], set_name: str = "train", mask: str = "half") -> Record:
    count = len(errors)
    cell = {"set": set_name, "mask": mask, "method": "blind"}
    return Record(cell, {}, list(map(str, range(count))), errors, [1] * count, [40] * count, ["converged"] * count)


TRAIN = [record([1e-9, 1.0, 1.0, 1e-5]), record([1.0, 1e-9, 1.0, 1e-9], mask="dust")]
CONTROL = [record([1.0, 1.0], "control"), record([1.0, 1e-9], "control", "dust")]


def test_any_mask_counts_an_image_once_and_all_masks_every_try() -> None:
    statistics = Statistics(TRAIN + CONTROL, "blind")
    assert (statistics.sets, statistics.masks, statistics.methods) == (
        ["train", "control"],
        ["half", "dust"],
        ["blind"],
    )
    rates = {mask: statistics.rate("train", mask, "blind") for mask in ("half", "dust", "any mask", "all masks")}
    assert {mask: (rate.count, rate.total) for mask, rate in rates.items()} == {
        "half": (1, 4), "dust": (2, 4), "any mask": (3, 4), "all masks": (3, 8)
    }  # fmt: skip
    assert statistics.rate("train", "half", "blind", 1e-4).count == 2
    assert statistics.excess().value == 0.75 - 0.5  # type: ignore[union-attr]
    # Three training errors tie with the smaller control error and are below the larger; one ties with the larger.
    assert statistics.membership().auc == pytest.approx((3 * (0.5 + 1) + 1 * (0 + 0.5)) / 8)  # type: ignore[union-attr]


def test_without_control_there_is_no_excess_and_no_membership() -> None:
    statistics = Statistics(TRAIN, "blind")
    assert (statistics.has_control, statistics.excess(), statistics.membership()) == (False, None, None)
    found = tables(statistics)
    assert (found["excess"], found["membership"]) == ([], [])
    assert len(found["summary"]) == 2
    assert [row["over"] for row in found["overall"]] == ["all masks", "any mask"]


def test_a_cell_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no cell train, frame, blind; it has the sets train, the masks half, dust"):
        Statistics(TRAIN, "blind").record("train", "frame", "blind")


def test_the_network_evaluations_of_a_method_are_counted_on_training_images() -> None:
    def cell(set_name: str, mask: str, method: str, mse: list[float], steps: list[int]) -> Record:
        where = {"set": set_name, "mask": mask, "method": method}
        return Record(where, {}, ["a", "b"], mse, [1, 1], steps, ["done"] * 2)

    records = [
        cell("train", "block", "blind", [1e-9, 1.0], [40, 80]),
        cell("train", "half", "blind", [1e-4, 1.0], [40, 120]),
        cell("control", "block", "blind", [1.0, 1.0], [500, 500]),
        cell("train", "block", "biharmonic", [1.0, 1.0], [0, 0]),
        cell("train", "half", "biharmonic", [1.0, 1.0], [0, 0]),
    ]
    (row,) = cost_rows(Statistics(records, "blind"))
    assert row == {
        "method": "blind", "evaluations": 280, "evaluations_a_try": 70, "recovered": 1, "evaluations_each": 280
    }  # fmt: skip


def test_difficulty_is_measured_by_biharmonic_inpainting() -> None:
    """Statistics read records, which name the kind of a method; they do not import methods."""
    assert Biharmonic.__name__ == MEASURE_OF_DIFFICULTY
