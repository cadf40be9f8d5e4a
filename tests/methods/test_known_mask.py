import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Erasure, InputError, KnownMask, Stop, mask
from tests import oracle
from tests.networks import Random

SHAPE = (3, 2, 2)
SIZE = math.prod(SHAPE)

pytestmark = pytest.mark.usefixtures("both_paths")


def draw_case(seed: int, count: int, noise: float, shared: bool = False) -> tuple[torch.Tensor, Erasure]:
    rng = np.random.default_rng(seed)
    x, keep = rng.random((count, *SHAPE)), rng.random((1 if shared else count, *SHAPE)) < 0.5
    y = keep * x + noise * rng.standard_normal(x.shape)
    return torch.from_numpy(y), Erasure(torch.from_numpy(keep))


@settings(max_examples=50)  # on each path
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 4),
    shared=st.booleans(),
    noise=st.sampled_from([0.0, 0.02, 0.3]),
    gain=st.sampled_from([0.7, 1.0, 1.5]),
    gamma=st.floats(0.05, 3),
    steps=st.sampled_from([1, 2, 7, 40]),
    paste=st.booleans(),
)
def test_agrees_with_the_oracle(
    seed: int, count: int, shared: bool, noise: float, gain: float, gamma: float, steps: int, paste: bool
) -> None:
    f = Random.draw(seed, SIZE, gain)
    y, truth = draw_case(seed, count, noise, shared)
    recovery = KnownMask(gamma=gamma, steps=steps, paste=paste)(f, y, truth)
    keep = truth.keep.expand(y.shape)
    for i in range(count):
        expected = oracle.known(f.vector, y[i].flatten().numpy(), keep[i].flatten().numpy(), gamma, steps, paste)
        assert np.allclose(recovery.estimate[i].flatten(), expected, rtol=1e-6, atol=1e-8)
    assert recovery.stops == [Stop.DONE] * count
    assert recovery.steps.tolist() == [steps] * count


def test_kept_values_are_pasted_exactly() -> None:
    y, truth = draw_case(1, 3, 0.0)
    f = Random.draw(1, SIZE)
    pasted, plain = (KnownMask(paste=p)(f, y, truth).estimate for p in (True, False))
    assert torch.equal(pasted[truth.keep], y[truth.keep])
    assert torch.equal(pasted[~truth.keep], plain[~truth.keep])
    assert not torch.allclose(plain[truth.keep], y[truth.keep])


def test_the_mask_returned_is_the_one_given() -> None:
    y, truth = draw_case(2, 3, 0.0)
    recovery = KnownMask()(Random.draw(2, SIZE), y, truth, chunk=2)
    assert torch.equal(recovery.degradation.keep, truth.keep)  # type: ignore[union-attr]


def test_one_mask_an_image_in_order_through_chunks() -> None:
    y, truth = draw_case(5, 7, 0.0)
    f = Random.draw(5, SIZE)
    whole = KnownMask()(f, y, truth).estimate
    for chunk in (1, 2, 3):
        assert torch.allclose(KnownMask()(f, y, truth, chunk=chunk).estimate, whole)


def test_the_papers_settings_are_the_defaults() -> None:
    assert (KnownMask().gamma, KnownMask().steps, KnownMask().paste) == (0.5, 40, True)


@pytest.mark.parametrize(
    ("fields", "message"), [({"gamma": 0.0}, r"gamma must be positive"), ({"steps": 0}, r"At least one ADMM step")]
)
def test_bad_settings(fields: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        KnownMask(**fields)


def test_bad_degradations() -> None:
    y = torch.zeros(4, 3, 8, 8)
    with pytest.raises(InputError, match=r"3 degradations were given for 4 images; give one, or one each"):
        KnownMask()(torch.zeros_like, y, mask("random-each:0.5", (3, 8, 8), count=3))
    with pytest.raises(InputError, match=r"The mask is 1x9x9; the images are 3x8x8"):
        KnownMask()(torch.zeros_like, y, mask("block", (3, 9, 9)))
    with pytest.raises(InputError, match=r"known needs the true degradation, such as an Erasure, not a Tensor"):
        KnownMask()(torch.zeros_like, y, torch.ones(4, 3, 8, 8))  # type: ignore[arg-type]
