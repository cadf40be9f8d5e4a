import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from recollect import Erasure, InputError
from recollect.degradation import all_erased, half_kept

VALUES = st.floats(-1, 2, width=32)
LENGTH = 6


def batch(values: list[float] | list[bool]) -> torch.Tensor:
    return torch.tensor(values).view(1, 1, 1, -1)


def vectors(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(values, min_size=LENGTH, max_size=LENGTH)


def test_apply_erases_to_zero(rng: torch.Generator) -> None:
    x = torch.rand(2, 3, 4, 4, generator=rng)
    keep = torch.rand(1, 1, 4, 4, generator=rng) < 0.5
    assert torch.equal(Erasure(keep).apply(x), x * keep)


def test_apply_erases_what_is_not_finite_too() -> None:
    assert torch.equal(Erasure(batch([False, True])).apply(batch([float("nan"), 0.5])), batch([0.0, 0.5]))


@given(vectors(st.booleans()), vectors(VALUES), vectors(VALUES), st.floats(0.02, 4))
def test_prox_minimises_its_objective(keep: list[bool], z: list[float], y: list[float], gamma: float) -> None:
    kept, zs, ys = np.array(keep), np.array(z), np.array(y)

    def objective(x: np.ndarray) -> float:
        return float(np.sum((kept * x - ys) ** 2) + gamma / 2 * np.sum((x - zs) ** 2))

    found = minimize(objective, np.zeros(LENGTH), method="BFGS", options={"gtol": 1e-9}).x
    closed = Erasure(batch(keep)).prox(batch(z).double(), batch(y).double(), gamma)
    assert np.allclose(closed.flatten().numpy(), found, atol=1e-5)


@given(vectors(VALUES), vectors(VALUES))
def test_refit_is_the_better_of_both_values(x: list[float], y: list[float]) -> None:
    """Brute force, negative y included; where both cost the same the value is kept."""
    xs, ys = batch(x).double(), batch(y).double()
    refitted = Erasure(torch.ones(1, 1, 1, LENGTH, dtype=torch.bool)).refit(xs, ys).keep.flatten().tolist()
    for kept, a, b in zip(refitted, x, y, strict=True):
        costs = {h: (h * a - b) ** 2 for h in (0, 1)}
        assert costs[int(kept)] == min(costs.values())
        assert kept == (costs[1] <= costs[0])


@given(vectors(VALUES), vectors(st.floats(0, 1, width=32)))
def test_refit_is_the_papers_rule_for_images(x: list[float], y: list[float]) -> None:
    refitted = Erasure(torch.ones(1, 1, 1, LENGTH, dtype=torch.bool)).refit(batch(x).double(), batch(y).double())
    for kept, a, b in zip(refitted.keep.flatten().tolist(), x, y, strict=True):
        if abs(a) > 1e-12 and abs(a - 2 * b) > 1e-12:  # away from ties, where differences round
            assert kept == (not (a > 2 * b or a < 0))


def test_refit_with_negative_observations() -> None:
    """The paper's short form would drop all of these: x > 2y or x < 0."""
    y, x = batch([-0.02, -0.02, -0.02, -0.02]), batch([-0.01, -0.03, 0.01, -0.05])
    assert Erasure(batch([True] * 4)).refit(x, y).keep.flatten().tolist() == [True, True, False, False]


def test_refit_returns_a_new_object(rng: torch.Generator) -> None:
    before = Erasure(torch.ones(1, 1, 2, 2, dtype=torch.bool))
    after = before.refit(torch.rand(1, 1, 2, 2, generator=rng), torch.zeros(1, 1, 2, 2))
    assert before.keep.all()
    assert not after.keep.any()


def test_expand_gives_each_image_its_mask() -> None:
    keep = torch.tensor([True, False]).view(1, 1, 1, 2)
    expanded = Erasure(keep).expand(torch.zeros(5, 3, 1, 2))
    assert expanded.keep.shape == (5, 3, 1, 2)
    assert torch.equal(expanded.keep[4, 2], keep[0, 0])


def test_fingerprints_tell_masks_apart() -> None:
    """All masks of ten values, each in its own row: equal masks, equal numbers, and never else."""
    keep = torch.tensor([[bool(n >> i & 1) for i in range(10)] for n in range(1024)]).view(1024, 1, 2, 5)
    one, again = Erasure(keep).fingerprint(), Erasure(keep.flip(0)).fingerprint().flip(0)
    assert torch.equal(one, again)
    assert len(set(one.tolist())) == 1024


def test_fingerprints_see_single_values_of_large_masks() -> None:
    keep = torch.ones(200, 3, 32, 32, dtype=torch.bool)
    for i in range(1, 200):
        keep[i].view(-1)[i * 15] = False
    assert len(set(Erasure(keep).fingerprint().tolist())) == 200


def test_the_empty_start_trusts_nothing(rng: torch.Generator) -> None:
    assert not all_erased(torch.rand(2, 3, 4, 4, generator=rng)).keep.any()


def test_the_random_start_keeps_half(rng: torch.Generator) -> None:
    keep = half_kept(torch.rand(20, 3, 32, 32, generator=rng)).keep
    assert keep.shape == (20, 3, 32, 32)
    assert abs(keep.double().mean() - 0.5) < 0.01
    assert abs((keep[1:] == keep[:-1]).double().mean() - 0.5) < 0.01  # images draw on their own ...
    assert abs((keep[:, 1:] == keep[:, :-1]).double().mean() - 0.5) < 0.01  # ... and so do channels


def test_the_random_start_belongs_to_the_image(rng: torch.Generator) -> None:
    y = torch.rand(6, 1, 5, 5, generator=rng)
    together = half_kept(y).keep
    assert torch.equal(half_kept(y.flip(0)).keep.flip(0), together)
    assert torch.equal(half_kept(y[3:4]).keep, together[3:4])
    assert torch.equal(half_kept(y.double()).keep, together)
    assert not torch.equal(half_kept(y, seed=43).keep, together)


@pytest.mark.parametrize(
    ("keep", "found"),
    [
        (torch.ones(1, 1, 2, 2), r"torch.float32 of shape \(1, 1, 2, 2\)"),
        (torch.ones(2, dtype=torch.bool), r"torch.bool of shape \(2,\)"),
        (np.ones((1, 1, 2, 2), dtype=bool), "ndarray"),
        ([[True]], "list"),
    ],
)
def test_bad_masks(keep: torch.Tensor, found: str) -> None:
    with pytest.raises(InputError, match=rf"needs a boolean N x C x H x W tensor \(True: kept\), got {found}"):
        Erasure(keep)


def test_a_mask_that_does_not_fit_the_images() -> None:
    images = torch.zeros(4, 3, 8, 8)
    with pytest.raises(InputError, match=r"The mask is 1x8x9; the images are 3x8x8 \(C x H x W\)"):
        Erasure(torch.ones(1, 1, 8, 9, dtype=torch.bool)).expand(images)
    with pytest.raises(InputError, match=r"The mask is 2x8x8; the images are 3x8x8"):
        Erasure(torch.ones(1, 2, 8, 8, dtype=torch.bool)).expand(images)
    with pytest.raises(InputError, match=r"3 degradations were given for 4 images; give one, or one each"):
        Erasure(torch.ones(3, 3, 8, 8, dtype=torch.bool)).expand(images)
