import pytest
import torch

from recollect.auditing.rates import best, pooled, rate_facts
from recollect.scoring import Rate, Score, excess


def score(*errors: float) -> Score:
    return Score(torch.tensor(errors, dtype=torch.float64))


def test_the_excess_is_newcombes_published_example() -> None:
    """Newcombe 1998, Statistics in Medicine 17:873, example (a), method 10: 56/70 against 48/80."""
    found = excess(Rate(56, 70), Rate(48, 80))
    assert (round(found.value, 4), round(found.low, 4), round(found.high, 4)) == (0.2, 0.0524, 0.3339)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 20), 0.6791, 1.0), ((0, 10), (0, 20), -0.1611, 0.2775)],
)
def test_the_excess_of_small_samples_is_newcombes_too(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    """The same paper's examples (b), (g) and (e)."""
    found = excess(Rate(*first), Rate(*second))
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


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


def test_the_best_of_all_masks_is_taken_image_by_image_and_a_nan_is_never_best() -> None:
    nan = float("nan")
    assert best([score(1, nan, 3, nan), score(2, 5, nan, nan)]).mse.tolist() == [1, 5, 3, float("inf")]


def test_facts_of_a_rate_stand_by_themselves() -> None:
    facts = rate_facts(Rate(1, 4))
    assert (facts["count"], facts["total"], facts["value"]) == (1, 4, 0.25)
    assert facts["low"] < 0.25 < facts["high"]
