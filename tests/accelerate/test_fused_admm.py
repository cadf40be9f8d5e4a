"""The quick steps against the page: `admm` itself is held to the oracle elsewhere."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recollect import Erasure
from recollect.accelerate import fused_admm as stepping
from recollect.accelerate.fused_admm import ErasureSteps, has_erasure_prox
from recollect.accelerate.tf32x3 import launch as products
from recollect.engine.runtime import Ready, ready
from recollect.methods import admm
from recollect.methods.admm import Solver
from tests.networks import Random

SHAPE = (3, 2, 2)
NETWORKS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: (x + 0.5) / 3,  # not half of x: there the last line does not depend on w
    "in place": lambda x: x.add_(0.5).div_(3),
    "in place sometimes": lambda x: x.mul_(0.3) if x.mean() > 0.3 else x * 0.3,
    "in place, untold": lambda x: x.data.add_(0.5).div_(3),
    "in place through numpy": lambda x: torch.from_numpy(np.divide(x.numpy(), 3, out=x.numpy())),
    "clamped, untold": lambda x: x.data.clamp_(0, 1) * 0.9,
    "gives back what it got": lambda x: x,
    "gives back a view of it": lambda x: x.transpose(2, 3),
    "one answer for ever": lambda x, kept={}: kept.setdefault(x.shape, torch.zeros_like(x)).copy_(x / 3),  # type: ignore[misc]
}


def draw(seed: int, count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Erasure]:
    draws = torch.Generator().manual_seed(seed)
    y = torch.rand(count, *SHAPE, generator=draws, dtype=dtype)
    return y, Erasure(torch.rand(y.shape, generator=draws) < 0.5)


def solve(f: Callable, y: Tensor, theta: Erasure, gamma: float, steps: int) -> Tensor:
    with ready(f, y, None) as f:
        return Solver(f, gamma, steps)(y, theta)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 5),
    gain=st.sampled_from([0.7, 1.0, 1.5]),
    gamma=st.floats(0.05, 5),
    steps=st.sampled_from([1, 2, 3, 7, 40]),
)
def test_the_same_as_on_the_page(seed: int, count: int, gain: float, gamma: float, steps: int) -> None:
    f = Random.draw(seed, math.prod(SHAPE), gain)
    y, theta = draw(seed, count)
    expected = admm(f, y, theta, gamma=gamma, steps=steps)
    assert torch.allclose(solve(f, y, theta, gamma, steps), expected, rtol=1e-8, atol=1e-11)


def in_one_pass(w: Tensor, v: Tensor, of_y: Tensor, of_w: Tensor) -> None:
    """What the kernel computes, for any device."""
    w.copy_(of_y + (1 - 2 * of_w) * v + of_w * w)


def test_the_same_where_a_kernel_takes_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*args: Tensor) -> None:
        calls.append(len(args[0]))
        in_one_pass(*args)

    monkeypatch.setattr(Ready, "on_tensor_cores", True)
    monkeypatch.setattr(stepping, "move", counted)
    f = Random.draw(2, math.prod(SHAPE), 1.5)
    y, theta = draw(2, 4)
    expected = admm(f, y, theta, gamma=0.5, steps=9)
    assert torch.allclose(solve(f, y, theta, 0.5, 9), expected, rtol=1e-9, atol=1e-12)
    assert calls == [4] * 7
    monkeypatch.setattr(stepping, "LARGEST", y.numel())  # too many values for it
    assert torch.allclose(solve(f, y, theta, 0.5, 9), expected, rtol=1e-9, atol=1e-12)
    assert len(calls) == 7


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (5, 3, 7, 9), (64, 3, 64, 64)])
@pytest.mark.parametrize("kind", ["plain", "negated", "channels last", "float64"])
def test_the_kernel_takes_the_step(shape: tuple[int, ...], kind: str) -> None:
    w, v, of_y, of_w = torch.rand(4, *shape, device="cuda", dtype=torch.float64 if kind == "float64" else torch.float32)
    v = torch.complex(v, -v).conj().imag if kind == "negated" else v
    v = v.to(memory_format=torch.channels_last) if kind == "channels last" else v
    expected = w.clone()
    in_one_pass(expected, v, of_y, of_w)
    products.move(w, v, of_y, of_w)
    assert torch.allclose(w, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("inference", [False, True])
def test_networks_with_ways_of_their_own(name: str, inference: bool) -> None:
    y, theta = draw(1, 4)
    for truth in (theta, Erasure(torch.zeros_like(theta.keep))):  # with all erased the first w is nothing but zeros
        expected = admm(lambda x: NETWORKS[name](x.clone()).clone(), y, truth, gamma=0.5, steps=9)
        with torch.inference_mode(inference):
            assert torch.allclose(solve(NETWORKS[name], y, truth, 0.5, 9), expected, rtol=1e-12)


def test_batches_of_any_size_one_after_another() -> None:
    """Buffers are used again: nothing of an earlier, larger batch may show."""
    f = Random.draw(4, math.prod(SHAPE), 1.5)
    with ready(f, draw(0, 1)[0], None) as made:
        solver = Solver(made, 0.5, 12)
        for seed, count in enumerate([3, 7, 2, 7, 1]):
            y, theta = draw(seed, count)
            expected = admm(f, y, theta, gamma=0.5, steps=12)
            assert torch.allclose(solver(y, theta), expected, rtol=1e-9, atol=1e-12)


def test_the_network_is_not_run_where_nothing_depends_on_it() -> None:
    sizes: list[int] = []

    def f(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return x / 2

    solve(f, *draw(0, 3), gamma=0.5, steps=40)
    assert sizes == [1] + [3] * 39  # the one is a look at what the network does to its input


@dataclass(frozen=True, eq=False)
class Shifting(Erasure):
    """A degradation with a prox of its own."""

    def prox(self, z: Tensor, y: Tensor, gamma: float) -> Tensor:
        return super().prox(z, y, gamma) + 0.1


def test_another_prox_takes_the_page_itself() -> None:
    y, theta = draw(2, 3)
    own = Shifting(theta.keep)
    assert has_erasure_prox(theta)
    assert not has_erasure_prox(own)
    f = NETWORKS["plain"]
    assert torch.equal(solve(f, y, own, 0.5, 10), admm(f, y, own, gamma=0.5, steps=10))
    assert not torch.allclose(solve(f, y, own, 0.5, 10), solve(f, y, theta, 0.5, 10))


class Eights:
    """Likes batches of multiples of eight, as graphs do, and takes no step."""

    def size_for(self, images: int) -> int:
        return -(-images // 8) * 8

    def run(self, step: Callable[[], Tensor], state: Tensor, times: int) -> int:
        return 0

    def once_more(self, size: int) -> Tensor | None:
        return None

    def forget(self) -> None:
        pass


class Replays(Eights):
    """Takes all steps, as graphs do: what the last one returned lies in memory that the step also uses."""

    def run(self, step: Callable[[], Tensor], state: Tensor, times: int) -> int:
        self._step = step
        for _ in range(times):
            step()
        return times

    def once_more(self, size: int) -> Tensor | None:
        return self._step()


@pytest.mark.parametrize("kind", ["random", "its input", "a view of its input"])
def test_the_last_step_may_be_a_replay(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = {
        "random": Random.draw(3, math.prod(SHAPE), 0.7),
        "its input": lambda x: x,
        "a view of its input": lambda x: x[:],
    }[kind]
    y, theta = draw(2, 13)
    with ready(f, y, None) as network:
        steps = ErasureSteps(network, 1.0, 12)
        monkeypatch.setattr(steps, "_graphs", Replays())
        found = steps(y, theta)
    assert torch.allclose(found, admm(f, y, theta, gamma=1.0, steps=12), rtol=1e-8, atol=1e-11)


def test_batches_are_filled_up_but_never_beyond_the_largest_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    f, sizes = Random.draw(3, math.prod(SHAPE), 0.7), []
    y, theta = draw(2, 60)
    with ready(f, y, None) as network:
        steps = ErasureSteps(network, 1.0, 12)
        monkeypatch.setattr(steps, "_graphs", Eights())
        for count in (50, 49, 20, 3, 60, 57):
            found = steps(y[:count], theta[:count])
            sizes.append(len(steps._w))
            assert torch.allclose(found, admm(f, y[:count], theta[:count], gamma=1.0, steps=12), rtol=1e-8, atol=1e-11)
    assert sizes == [50, 50, 24, 8, 60, 60]
