"""Lower resolution by an unknown factor: a projection, and found by the unchanged blind method."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Blind, InputError, KnownMask, Score, load, observe
from recollect.degradation import Coarse
from recollect.degradation.coarse import factors_for
from tests.degradation.dense import dense_prox, matrix
from tests.planted import Memorizer

STORED = load("photos?count=12&size=16")
MEMORIZER = Memorizer(STORED.pixels)


def coarse(*factors: int) -> Coarse:
    return Coarse(torch.tensor(factors))


def test_blocks_hold_their_means_each_image_by_its_own_factor() -> None:
    x = STORED.pixels[:3]
    out = coarse(1, 2, 4).apply(x)
    assert torch.equal(out[0], x[0])
    assert torch.allclose(out[1, :, 2:4, 4:6], x[1, :, 2:4, 4:6].mean((1, 2))[:, None, None], atol=1e-6)
    assert torch.allclose(out[2, :, 4:8, :4], x[2, :, 4:8, :4].mean((1, 2))[:, None, None], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1, 2, 3, 6]), st.floats(0.02, 4), st.integers(0, 1000))
def test_prox_minimises_its_objective(factor: int, gamma: float, seed: int) -> None:
    z, y = torch.rand(2, 1, 2, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    truth = coarse(factor)
    assert torch.allclose(truth.prox(z, y, gamma), dense_prox(matrix(truth, (6, 6)), z, y, gamma), atol=1e-9)


@pytest.mark.parametrize("factor", [1, 2, 4, 8, 16])
def test_refit_finds_the_factor(factor: int) -> None:
    y = coarse(factor).apply(STORED.pixels)
    assert Coarse.first_guess(y).refit(STORED.pixels, y).factor.unique().tolist() == [factor]


@pytest.mark.parametrize(("sides", "factors"), [((28, 28), [1, 2, 4, 7, 14, 28]), ((9, 18), [1, 3, 9]), ((5, 7), [1])])
def test_every_factor_that_divides_the_sides_can_be_found(sides: tuple[int, int], factors: list[int]) -> None:
    x = torch.rand(2, 3, *sides, generator=torch.Generator().manual_seed(0))
    assert factors_for(x) == factors
    for factor in factors:
        y = coarse(factor).expand(x).apply(x)
        assert len(y.flatten(2)[0, 0].unique()) == sides[0] * sides[1] // factor**2
        assert Coarse.first_guess(y).refit(x, y).factor.tolist() == [factor] * 2


def test_block_means_are_pasted() -> None:
    truth, x = coarse(2).expand(STORED.pixels), STORED.pixels
    pasted = truth.paste(torch.rand(x.shape, generator=torch.Generator().manual_seed(0)), truth.apply(x))
    assert torch.allclose(truth.apply(pasted), truth.apply(x), atol=1e-6)


@pytest.mark.parametrize("factor", [2, 4])
def test_blind_recovers_image_and_factor(factor: int) -> None:
    seen = observe(STORED, coarse(factor))
    found = Blind(start=Coarse.first_guess)(MEMORIZER, seen.y)
    assert Score.of(found.estimate, STORED.pixels).accurate.value == 1
    assert found.degradation.factor.unique().tolist() == [factor]  # type: ignore[union-attr]


def test_the_known_factor_recovers_too() -> None:
    seen = observe(STORED, coarse(2))
    known = KnownMask()(MEMORIZER, seen.y, seen.truth)
    assert Score.of(known.estimate, STORED.pixels).accurate.value == 1


def test_a_factor_that_does_not_divide_the_sides_is_refused() -> None:
    with pytest.raises(InputError, match="16x16 can be made coarser by 1, 2, 4, 8, 16, not by 3"):
        observe(STORED, coarse(3))
    with pytest.raises(InputError, match="whole numbers"):
        Coarse(torch.tensor([2.0]))
