"""Algorithm 1 and its accelerated form."""

import pytest
import torch

from recollect import Erasure
from recollect.engine import prepare, without_acceleration
from recollect.methods import admm
from recollect.methods.admm import solve
from tests.networks import Random

SHAPE = (3, 2, 2)


def test_admm_puts_out_xi_not_v() -> None:
    """With f = 0 the two part: v stays 0, and xi = y / (1 + g) in the first step."""
    y = torch.full((1, 1, 1, 1), 0.6)
    whole = Erasure(torch.ones(1, 1, 1, 1, dtype=torch.bool))
    assert admm(torch.zeros_like, y, whole, gamma=1.0, steps=1).item() == pytest.approx(0.4)


@pytest.mark.parametrize("steps", [1, 2, 3, 40])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_solve_takes_the_same_steps_on_either_path(gamma: float, steps: int) -> None:
    f, y = Random.draw(3, 12), torch.rand(5, *SHAPE, dtype=torch.float64)
    keep = torch.rand(5, *SHAPE) < 0.5
    expected = admm(f, y, Erasure(keep), gamma=gamma, steps=steps)
    with prepare(f, y, None) as runtime:
        assert torch.allclose(solve(runtime, y, Erasure(keep), gamma=gamma, steps=steps), expected, rtol=1e-9)
    with without_acceleration(), prepare(f, y, None) as runtime:
        assert torch.equal(solve(runtime, y, Erasure(keep), gamma=gamma, steps=steps), expected)


def test_a_degradation_with_a_prox_of_its_own_takes_the_plain_loop() -> None:
    class Doubtful(Erasure):
        def prox(self, z: torch.Tensor, y: torch.Tensor, gamma: float) -> torch.Tensor:
            return super().prox(z, y, 2 * gamma)

    f, y, keep = Random.draw(3, 12), torch.rand(5, *SHAPE, dtype=torch.float64), torch.rand(5, *SHAPE) < 0.5
    with prepare(f, y, None) as runtime:
        own = solve(runtime, y, Doubtful(keep), gamma=0.5, steps=9)
    assert torch.equal(own, admm(f, y, Doubtful(keep), gamma=0.5, steps=9))
    assert not torch.allclose(own, admm(f, y, Erasure(keep), gamma=0.5, steps=9))
