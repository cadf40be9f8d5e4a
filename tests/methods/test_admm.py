"""Algorithm 1 and its accelerated form."""

import pytest
import torch
from torch import nn

from recollect import Erasure
from recollect.engine import prepare, without_acceleration
from recollect.methods import admm
from recollect.methods.admm import solve
from tests.networks import Random, Scheduled

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


class OwnRange(nn.Module):
    """An autoencoder that works in [-1, 1] and says so."""

    admm_origin = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.inner = Random.draw(3, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.inner(2 * x - 1) + 1) / 2


@pytest.mark.parametrize("steps", [1, 2, 3, 40])
def test_a_model_with_a_range_of_its_own_is_solved_from_zero_in_that_range(steps: int) -> None:
    """ADMM in [0, 1] from the model's origin is ADMM in [-1, 1] from zero: every step is affine but for f."""
    f, y, keep = OwnRange(), torch.rand(5, *SHAPE, dtype=torch.float64), torch.rand(5, *SHAPE) < 0.5
    expected = (admm(f.inner, 2 * y - 1, Erasure(keep), gamma=0.5, steps=steps) + 1) / 2
    with prepare(f, y, None) as runtime:
        assert torch.allclose(solve(runtime, y, Erasure(keep), gamma=0.5, steps=steps), expected, rtol=1e-9)
    with without_acceleration(), prepare(f, y, None) as runtime:
        assert torch.allclose(solve(runtime, y, Erasure(keep), gamma=0.5, steps=steps), expected, rtol=1e-9)


def test_another_origin_is_another_first_step() -> None:
    y, none_kept = torch.rand(1, *SHAPE), Erasure(torch.zeros(1, *SHAPE, dtype=torch.bool))
    assert torch.equal(admm(torch.zeros_like, y, none_kept, gamma=0.5, steps=1), torch.zeros_like(y))
    assert torch.equal(admm(torch.zeros_like, y, none_kept, gamma=0.5, steps=1, origin=0.5), torch.full_like(y, 0.5))


def test_an_attribute_of_the_same_name_that_is_no_number_means_nothing() -> None:
    f = OwnRange()
    f.admm_origin = "grey"  # type: ignore[assignment]
    with prepare(f, torch.rand(2, *SHAPE, dtype=torch.float64), None) as runtime:
        assert runtime.origin == 0.0


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_a_model_may_differ_from_step_to_step(steps: int) -> None:
    f, y = Scheduled(Random.draw(3, 12)), torch.rand(5, *SHAPE, dtype=torch.float64)
    theta = Erasure(torch.rand(5, *SHAPE) < 0.5)
    v, u = torch.zeros_like(y), torch.zeros_like(y)
    for row in f.admm_schedule(steps)[:steps]:  # by hand
        xi = theta.prox(v - u, y, 0.5)
        v = f(xi + u, row)
        u = u + xi - v
    assert torch.equal(admm(f, y, theta, gamma=0.5, steps=steps), xi)
    with prepare(f, y, None) as runtime:
        for _ in range(2):  # a schedule starts again
            assert torch.allclose(solve(runtime, y, theta, gamma=0.5, steps=steps), xi, rtol=1e-9)
    with without_acceleration(), prepare(f, y, None) as runtime:
        assert torch.equal(solve(runtime, y, theta, gamma=0.5, steps=steps), xi)
