import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from recollect import InputError, Score, mask_agreement
from recollect.scoring import PSNR_CEILING, Rate, excess, mse, psnr, threshold_grid, wilson


def test_mse_is_the_mean_over_all_values_of_an_image(rng: torch.Generator) -> None:
    a, b = (torch.rand(3, 2, 4, 5, generator=rng) for _ in range(2))
    errors = mse(a, b)
    assert errors.dtype == torch.float64
    for i in range(3):
        direct = [(float(p) - float(q)) ** 2 for p, q in zip(a[i].flatten(), b[i].flatten(), strict=True)]
        assert errors[i].item() == pytest.approx(sum(direct) / 40, rel=1e-12)


def test_mse_is_exact_for_small_errors_of_float32() -> None:
    a = torch.full((1, 1, 100, 100), 0.7)
    b = a + 3e-4
    exact = (float(b[0, 0, 0, 0]) - float(a[0, 0, 0, 0])) ** 2
    assert mse(a, b).item() == pytest.approx(exact, rel=1e-12)


def test_mse_takes_mixed_precision(rng: torch.Generator) -> None:
    a = torch.rand(2, 1, 3, 3, generator=rng)
    assert mse(a.double(), a).tolist() == [0, 0]


def test_mse_of_other_shapes() -> None:
    with pytest.raises(InputError, match=r"Cannot compare \(2, 1, 3, 3\) with \(1, 1, 3, 3\): shapes differ"):
        mse(torch.zeros(2, 1, 3, 3), torch.zeros(1, 1, 3, 3))


@pytest.mark.parametrize(("error", "decibels"), [(1e-7, 70), (1e-3, 30), (1.0, 0), (100.0, -20), (0.0, PSNR_CEILING)])
def test_psnr(error: float, decibels: float) -> None:
    assert psnr(np.array([error])).item() == pytest.approx(decibels)


def test_rates_count_what_is_strictly_below() -> None:
    score = Score(np.array([0.0, 9e-8, 1e-7, 2e-7, 4.9e-4, 5e-4, 0.1, 3.0]))
    assert (score.accurate.count, score.approximate.count) == (2, 5)
    assert score.accurate.total == 8
    assert score.accurate.value == 0.25
    assert score.mean_psnr == pytest.approx(float(score.psnr.mean()))


def test_mean_psnr_is_the_mean_of_psnrs_not_the_psnr_of_the_mean() -> None:
    assert Score(np.array([1e-2, 1e-4])).mean_psnr == pytest.approx(30)


def test_score_of_images(rng: torch.Generator) -> None:
    a, b = (torch.rand(3, 2, 4, 5, generator=rng) for _ in range(2))
    assert Score.of(a, b).mse.tolist() == mse(a, b).tolist()


def test_the_threshold_grid_has_its_ends_and_is_logarithmic() -> None:
    grid = threshold_grid()
    assert (grid[0], grid[-1]) == (1e-3, 1e-7)
    assert len(grid) == 41
    assert all(b / a == pytest.approx(10**-0.1) for a, b in pairwise(grid))


def test_the_rate_falls_with_the_threshold() -> None:
    score = Score(10 ** np.linspace(-9, -1, 50))
    counts = [rate.count for rate in score.rates()]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == score.accurate.count
    assert [rate.count for rate in score.rates([5e-4, 1.0])] == [score.approximate.count, 50]
    assert score.rates([]) == []


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(case: tuple[int, int]) -> None:
    count, total = case
    expected = binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert wilson(count, total) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert Rate(count, total).interval == wilson(count, total)


def test_a_rate_reads_well() -> None:
    assert str(Rate(0, 50)) == "0.0% [0.0%, 7.1%]"


@pytest.mark.parametrize(("count", "total"), [(0, 0), (3, 2), (-1, 2)])
def test_bad_rates(count: int, total: int) -> None:
    with pytest.raises(InputError, match=rf"a count out of a total of at least one, got {count} of {total}"):
        wilson(count, total)


def masks(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.bool).view(len(rows), 1, 2, 2)


@pytest.mark.parametrize(
    ("estimated", "true", "accuracy", "iou"),
    [
        ([1, 1, 0, 0], [1, 0, 0, 1], 0.5, 1 / 3),
        ([1, 1, 1, 0], [1, 1, 0, 0], 0.75, 0.5),  # of the erased; of the kept it would be 2/3
        ([1, 1, 1, 1], [1, 1, 1, 1], 1.0, 1.0),  # nothing erased, nothing missed
        ([1, 1, 1, 1], [0, 0, 0, 0], 0.0, 0.0),
    ],
)
def test_mask_agreement_by_hand(estimated: list[int], true: list[int], accuracy: float, iou: float) -> None:
    agreement = mask_agreement(masks([0] * 4, estimated), masks([0] * 4, true))  # image by image
    assert agreement.accuracy.tolist() == [1.0, accuracy]
    assert agreement.erased_iou.tolist() == [1.0, iou]


def test_mask_agreement_spreads_one_true_mask() -> None:
    true = masks([1, 0, 0, 1])
    estimated = true.expand(5, 3, 2, 2)
    assert mask_agreement(estimated, true).accuracy.tolist() == [1.0] * 5


def test_bad_masks() -> None:
    with pytest.raises(InputError, match=r"Masks are boolean \(True: kept\), got torch.uint8 and torch.bool"):
        mask_agreement(masks([1, 0, 0, 1]).byte(), masks([1, 0, 0, 1]))
    with pytest.raises(InputError, match=r"Cannot compare masks of shapes \(1, 1, 2, 2\) with \(1, 1, 3, 3\)"):
        mask_agreement(masks([1, 0, 0, 1]), torch.ones(1, 1, 3, 3, dtype=torch.bool))


def test_a_nan_error_counts_as_no_recovery() -> None:
    assert Score(np.array([math.nan, 0.0])).approximate.count == 1


def test_masks_are_tensors() -> None:
    with pytest.raises(InputError, match="such as the `keep` of an Erasure; got Score and Tensor"):
        mask_agreement(Score(torch.zeros(1)), masks([1, 0, 0, 1]))  # type: ignore[arg-type]


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


def test_the_best_of_several_tries_is_taken_image_by_image_and_a_nan_is_never_best() -> None:
    nan = float("nan")
    tries = [Score(np.array(errors)) for errors in ([1, nan, 3, nan], [2, 5, nan, nan])]
    assert Score.best_of(tries).mse.tolist() == [1, 5, 3, float("inf")]
