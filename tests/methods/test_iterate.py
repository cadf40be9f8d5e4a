import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from recollect import InputError, Iterate, Stop
from recollect.methods import iterate
from tests import oracle
from tests.networks import Random

SHAPE = (3, 2, 2)
SIZE = math.prod(SHAPE)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    gain=st.sampled_from([0.7, 1.0, 1.5]),
    tolerance=st.sampled_from([1e-3, 1e-7, 1e-12]),
    limit=st.sampled_from([1, 5, 60]),
)
def test_agrees_with_the_oracle(seed: int, gain: float, tolerance: float, limit: int) -> None:
    f = Random.draw(seed, SIZE, gain)
    y = torch.from_numpy(np.random.default_rng(seed).standard_normal((3, *SHAPE)))
    recovery = Iterate(tolerance=tolerance, limit=limit)(f, y, chunk=2)
    for i in range(3):
        x, steps, settled = oracle.iterate(f.vector, y[i].flatten().numpy(), tolerance, limit)
        assert np.allclose(recovery.estimate[i].flatten(), x)
        assert int(recovery.steps[i]) == int(recovery.rounds[i]) == steps
        assert recovery.stops[i] == (Stop.CONVERGED if settled else Stop.LIMIT)
    assert recovery.degradation is None


@given(seed=st.integers(0, 10**6), count=st.sampled_from([2, 7, 100]))
def test_steps_queued_before_a_check_change_nothing(seed: int, count: int) -> None:
    f = Random.draw(seed, SIZE, 1.0)
    y = torch.from_numpy(np.random.default_rng(seed).standard_normal((5, *SHAPE)))
    method = Iterate(tolerance=1e-3, limit=9)
    one_by_one = method(f, y, chunk=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterate, "steps_between_checks", lambda *_: count)
        queued = method(f, y, chunk=2)
    assert torch.allclose(queued.estimate, one_by_one.estimate, rtol=1e-12, atol=1e-12)  # in other batches
    for name in ("rounds", "steps", "stop"):
        assert torch.equal(getattr(queued, name), getattr(one_by_one, name))


def test_the_first_application_starts_from_y() -> None:
    y = torch.rand(2, *SHAPE)
    assert torch.equal(Iterate(limit=1)(lambda x: x / 2, y).estimate, y / 2)


@pytest.mark.parametrize("tolerance", [0.0, 1e-12])
def test_an_exact_fixed_point_converges(tolerance: float) -> None:
    recovery = Iterate(tolerance=tolerance)(lambda x: torch.full_like(x, 0.5), torch.rand(2, *SHAPE))
    assert recovery.stops == [Stop.CONVERGED] * 2
    assert recovery.steps.tolist() == [2, 2]


def test_a_network_that_works_in_place_does_no_harm() -> None:
    """The first layer overwrites its input: neither y nor the measured change may suffer."""
    f = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 3, 1))
    y = torch.randn(2, *SHAPE)
    before = y.clone()
    recovery = Iterate(limit=4, tolerance=0)(f, y)
    assert torch.equal(y, before)
    pure = Iterate(limit=4, tolerance=0)(lambda x: f[1](x.relu()), y)
    assert torch.equal(recovery.estimate, pure.estimate)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tolerance": -1.0}, r"The tolerance is an MSE, zero or more; got -1.0"),
        ({"tolerance": math.nan}, r"The tolerance is an MSE, zero or more; got nan"),
        ({"limit": 0}, r"The limit is a number of steps, 1 or more; got 0"),
    ],
)
def test_bad_settings(fields: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Iterate(**fields)
