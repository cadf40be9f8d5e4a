"""Fused steps against the plain loop, which is held to the oracle elsewhere."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from recollect import Erasure
from recollect.accelerate import FusedAdmm
from recollect.accelerate.backend import AdmmStep
from recollect.engine import prepare
from recollect.methods.admm import admm, solve
from tests.accelerate.by_hand import admm_step
from tests.networks import Random, Scheduled

SHAPE = (3, 2, 2)
NETWORKS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: (x + 0.5) / 3,  # not half of x: there the last line does not depend on w
    "in place": lambda x: x.add_(0.5).div_(3),
    "in place sometimes": lambda x: x.mul_(0.3) if x.mean() > 0.3 else x * 0.3,
    "in place, uncounted": lambda x: x.data.add_(0.5).div_(3),
    "in place through numpy": lambda x: torch.from_numpy(np.divide(x.numpy(), 3, out=x.numpy())),
    "clamped, uncounted": lambda x: x.data.clamp_(0, 1) * 0.9,
    "returns its input": lambda x: x,
    "returns a view of its input": lambda x: x.transpose(2, 3),
    "one answer for ever": lambda x, kept={}: kept.setdefault(x.shape, torch.zeros_like(x)).copy_(x / 3),  # type: ignore[misc]
}


def draw(seed: int, count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Erasure]:
    draws = torch.Generator().manual_seed(seed)
    y = torch.rand(count, *SHAPE, generator=draws, dtype=dtype)
    return y, Erasure(torch.rand(y.shape, generator=draws) < 0.5)


def accelerated(f: Callable, y: Tensor, theta: Erasure, gamma: float, steps: int) -> Tensor:
    with prepare(f, y, None) as runtime:
        return solve(runtime, y, theta, gamma=gamma, steps=steps)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6), count=st.integers(1, 5), gamma=st.floats(0.05, 5), steps=st.sampled_from([1, 2, 3, 5])
)
def test_carried_on_from_any_state_it_is_the_plain_loop(seed: int, count: int, gamma: float, steps: int) -> None:
    f = Random.draw(seed, math.prod(SHAPE), 1.0)
    y, theta = draw(seed, count)
    v, u = draw(seed + 1, count)[0], draw(seed + 2, count)[0] - 0.5
    with prepare(f, y, None) as runtime:
        fused = runtime.fused_admm(gamma, 40)
        assert fused
        fused(y, theta.keep)  # other values are left in its buffers
        after = fused.carry_on(y, theta.keep, v, u, steps)
    for _ in range(steps):
        xi = theta.prox(v - u, y, gamma)
        v = f(xi + u)
        u = u + xi - v
    for ours, plain in zip(after, (xi, v, u), strict=True):
        assert torch.allclose(ours, plain, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps_that_are_carried_on_come_after_the_schedule(steps: int) -> None:
    f, (y, theta) = Scheduled(Random.draw(3, math.prod(SHAPE), 1.0)), draw(2, 4)
    v, u = draw(4, 4)[0], draw(5, 4)[0] - 0.5
    with prepare(f, y, None) as runtime:
        fused = runtime.fused_admm(0.5, 6)
        assert fused
        before = fused(y, theta.keep)
        after = fused.carry_on(y, theta.keep, v, u, steps)
        assert torch.equal(fused(y, theta.keep), before)
    for _ in range(steps):
        xi = theta.prox(v - u, y, 0.5)
        v = f(xi + u)
        u = u + xi - v
    for ours, plain in zip(after, (xi, v, u), strict=True):
        assert torch.allclose(ours, plain, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_write_into_their_input_are_carried_on(name: str) -> None:
    f, (y, theta) = NETWORKS[name], draw(3, 4)
    v = u = torch.zeros_like(y)
    with prepare(f, y, None) as runtime:
        fused = runtime.fused_admm(0.5, 40)
        assert fused
        ours = fused.carry_on(y, theta.keep, v, u, 5)[1]
        for _ in range(5):
            xi = theta.prox(v - u, y, 0.5)
            v = f((xi + u).clone()).clone()
            u = u + xi - v
    assert torch.allclose(ours, v, rtol=1e-8, atol=1e-11)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 5),
    gain=st.sampled_from([0.7, 1.0, 1.5]),
    gamma=st.floats(0.05, 5),
    steps=st.sampled_from([1, 2, 3, 7, 40]),
)
def test_the_same_as_the_plain_loop(seed: int, count: int, gain: float, gamma: float, steps: int) -> None:
    f = Random.draw(seed, math.prod(SHAPE), gain)
    y, theta = draw(seed, count)
    expected = admm(f, y, theta, gamma=gamma, steps=steps)
    assert torch.allclose(accelerated(f, y, theta, gamma, steps), expected, rtol=1e-8, atol=1e-11)


def test_the_same_where_a_kernel_takes_the_steps() -> None:
    sizes: list[int] = []

    def counted(*args: Tensor) -> None:
        sizes.append(len(args[0]))
        admm_step(*args)

    f = Random.draw(2, math.prod(SHAPE), 1.5)
    y, theta = draw(2, 4)
    expected = admm(f, y, theta, gamma=0.5, steps=9)

    def kernel_for(most: int) -> Callable[[int], AdmmStep | None]:
        return lambda values: counted if values < most else None

    with prepare(f, y, None) as runtime:
        for most, steps in ((y.numel() + 1, 7), (y.numel(), 0)):  # the second has no kernel for so many values
            sizes.clear()
            fused = FusedAdmm(runtime, 0.5, 9, find_kernel=kernel_for(most))
            assert torch.allclose(fused(y, theta.keep), expected, rtol=1e-9, atol=1e-12)
            assert sizes == [4] * steps


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("inference", [False, True])
def test_networks_that_write_into_their_input_or_return_it(name: str, inference: bool) -> None:
    y, theta = draw(1, 4)
    for truth in (theta, Erasure(torch.zeros_like(theta.keep))):  # with all erased the first w is nothing but zeros
        expected = admm(lambda x: NETWORKS[name](x.clone()).clone(), y, truth, gamma=0.5, steps=9)
        with torch.inference_mode(inference):
            assert torch.allclose(accelerated(NETWORKS[name], y, truth, 0.5, 9), expected, rtol=1e-12)


def test_batches_of_any_size_one_after_another() -> None:
    """Buffers are used again: nothing of an earlier, larger batch may show."""
    f = Random.draw(4, math.prod(SHAPE), 1.5)
    with prepare(f, draw(0, 1)[0], None) as runtime:
        for seed, count in enumerate([3, 7, 2, 7, 1]):
            y, theta = draw(seed, count)
            expected = admm(f, y, theta, gamma=0.5, steps=12)
            ours = solve(runtime, y, theta, gamma=0.5, steps=12)
            assert torch.allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_the_network_is_not_run_where_nothing_depends_on_it() -> None:
    sizes: list[int] = []

    def f(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return x / 2

    accelerated(f, *draw(0, 3), gamma=0.5, steps=40)
    assert sizes == [1] + [3] * 39  # the first probes what the network does to its input


@dataclass(frozen=True, eq=False)
class Shifting(Erasure):
    """A degradation with a prox of its own."""

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        return super().prox(z, y, gamma) + 0.1


def test_another_prox_runs_in_the_plain_loop() -> None:
    y, theta = draw(2, 3)
    own = Shifting(theta.keep)
    f = NETWORKS["plain"]
    assert torch.equal(accelerated(f, y, own, 0.5, 10), admm(f, y, own, gamma=0.5, steps=10))
    assert not torch.allclose(accelerated(f, y, own, 0.5, 10), accelerated(f, y, theta, 0.5, 10))


class Eights:
    """Rounds batches up to multiples of eight, as graphs do, and takes no step."""

    def size_for(self, images: int) -> int:
        return -(-images // 8) * 8

    def run(self, step: Callable[[], Tensor], state: Sequence[Tensor], times: int) -> int:
        return 0

    def once_more(self, size: int) -> Tensor | None:
        return None

    def forget(self) -> None:
        pass


class Replays(Eights):
    """Takes all steps, as graphs do: what the last one returned lies in memory that the step also uses."""

    def run(self, step: Callable[[], Tensor], state: Sequence[Tensor], times: int) -> int:
        self._step = step
        for _ in range(times):
            step()
        return times

    def once_more(self, size: int) -> Tensor | None:
        return self._step()


@pytest.mark.parametrize("kind", ["random", "its input", "a view of its input", "scheduled"])
def test_the_last_step_may_be_a_replay(kind: str) -> None:
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "random": Random.draw(3, math.prod(SHAPE), 0.7),
        "its input": lambda x: x,
        "a view of its input": lambda x: x[:],
        "scheduled": Scheduled(Random.draw(3, math.prod(SHAPE), 0.7)),
    }
    f = kinds[kind]
    y, theta = draw(2, 13)
    with prepare(f, y, None) as runtime:
        ours = FusedAdmm(runtime, 1.0, 12, Replays())(y, theta.keep)
    assert torch.allclose(ours, admm(f, y, theta, gamma=1.0, steps=12), rtol=1e-8, atol=1e-11)


def test_batches_are_rounded_up_but_never_beyond_the_largest_so_far() -> None:
    network, sizes = Random.draw(3, math.prod(SHAPE), 0.7), []

    def f(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return network(x)

    y, theta = draw(2, 60)
    with prepare(f, y, None) as runtime:
        fused = FusedAdmm(runtime, 1.0, 12, Eights())
        for count, size in ((50, 50), (49, 50), (20, 24), (3, 8), (60, 60), (57, 60)):
            ours = fused(y[:count], theta.keep[:count])
            assert sizes[-1] == size
            expected = admm(network, y[:count], theta[:count], gamma=1.0, steps=12)
            assert torch.allclose(ours, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.gpu
@pytest.mark.parametrize("steps", [1, 2, 5, 10])
def test_captured_steps_carry_on_like_eager_ones(steps: int) -> None:
    f = nn.Sequential(nn.Flatten(), nn.Linear(12, 12), nn.Tanh(), nn.Unflatten(1, SHAPE)).cuda()
    y, theta = draw(5, 8, torch.float32)
    y, keep = y.cuda(), theta.keep.cuda()
    v, u = torch.rand_like(y), torch.rand_like(y) - 0.5
    with prepare(f, y, None) as runtime:
        captured, eager = runtime.fused_admm(0.5, 40), FusedAdmm(runtime, 0.5, 40)
        assert captured
        for _ in range(3):  # the first captures, others replay
            after = captured.carry_on(y, keep, v, u, steps)
            for ours, plain in zip(after, eager.carry_on(y, keep, v, u, steps), strict=True):
                assert torch.allclose(ours, plain, atol=1e-6)
