"""An autoencoder made ready: its working set, and whether our kernels run it."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, Iterate, TiedTwoLayer, UNet
from recollect.accelerate.dispatch import BY_THE_LIBRARY
from recollect.accelerate.tf32x3.backend import TensorCores
from recollect.accelerate.tf32x3.launch import Call, Outcome
from recollect.engine import runtime as ready
from tests.accelerate.by_hand import ByHand, on_a_cpu
from tests.networks import Halves

gpu = pytest.mark.gpu
ROWS_OF_32 = torch.rand(5, 1, 4, 32)


def test_the_working_set_shrinks_with_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.zeros(50, 3, 64, 64)
    sizes = {}
    for free in (10**12, 10**9, 10**6):
        monkeypatch.setattr(ready, "free_memory", lambda _, free=free: free)
        f = Halves()
        Iterate(limit=1)(f, y)
        sizes[free] = max(f.sizes)
    assert sizes[10**12] == 50 > sizes[10**9] > sizes[10**6] == 1


def test_the_working_set_is_small_for_convolutions() -> None:
    y = torch.rand(100, 1, 4, 4)
    for f, size in ((nn.Conv2d(1, 1, 3, padding=1), ready.CPU_CHUNK_CONVOLUTIONS), (nn.Linear(4, 4), 100)):
        sizes: list[int] = []
        Iterate(limit=1)(f, y, trace=lambda s, sizes=sizes: sizes.append(len(s.index)))  # type: ignore[misc]
        assert max(sizes) == size


class Reshaping(nn.Module):
    """Writes into its feature maps through what is a view of them only channels first."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.convolution(x)
        maps.reshape(len(x), -1).clamp_(-0.1, 0.1)
        return maps


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(40, 40)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + torch.rand_like(x)


def made_ready(f: nn.Module, y: Tensor, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(ready, "own_products", lambda modules, device: on_a_cpu(*modules))
    with ready.ready(f, y, 4) as made:
        return made


@pytest.mark.parametrize(
    ("f", "shape", "as_given"),
    [
        (nn.Conv2d(16, 16, 3, padding=1), (5, 16, 4, 4), False),
        (Reshaping(), (5, 16, 4, 4), True),
        (nn.Sequential(nn.Linear(40, 40), nn.LeakyReLU()), (5, 2, 2, 40), False),
    ],
)
def test_networks_for_the_kernel_give_the_same_with_it(
    f: nn.Module, shape: tuple[int, ...], as_given: bool, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = torch.rand(shape)
    made = made_ready(f, y, monkeypatch)
    assert made.runs_kernels
    assert made._products.as_given is as_given
    with torch.no_grad():
        assert torch.allclose(made(y), f(y), atol=1e-5)
    assert calls


def test_a_look_takes_two_calls_of_the_network(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    f, seen = nn.Sequential(nn.Linear(40, 40), nn.LeakyReLU()), []
    f.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    assert made_ready(f, torch.rand(5, 2, 2, 40), monkeypatch).runs_kernels
    assert seen == [4, 4]
    assert len(calls) == 1


def test_one_that_does_not_runs_in_the_library_with_a_word(
    calls: list[Call], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=ready.__name__)
    f, y = Drawing(), torch.rand(5, 2, 2, 40)
    assert not made_ready(f, y, monkeypatch).runs_kernels
    assert "with ours the network gives something else; it may draw at random" in caplog.text
    assert ready.products_of(f, y) == BY_THE_LIBRARY
    assert ready.products_of(f.linear, y) == ByHand.in_words


def test_so_does_one_that_the_kernel_fails_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=ready.__name__)

    def fail(*_: Any) -> Outcome:
        raise RuntimeError("cannot be compiled")

    monkeypatch.setattr(ByHand, "run", fail)
    assert not made_ready(nn.Linear(40, 40), torch.rand(5, 2, 2, 40), monkeypatch).runs_kernels
    assert "with ours the network fails (RuntimeError: cannot be compiled)" in caplog.text


class Particular(nn.Module):
    """Reshapes, and refuses some images."""

    def __init__(self, refuses: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self.inner, self.refuses = Reshaping(), refuses

    def forward(self, x: Tensor) -> Tensor:
        if self.refuses(x):
            raise ValueError("not these")
        return self.inner(x)


@pytest.mark.parametrize(
    ("refuses", "count"), [(lambda x: bool((x < 0).any() or (x > 1).any()), 5), (lambda x: len(x) != 1, 1)]
)
def test_one_that_is_particular_is_looked_at_with_its_own_images(
    refuses: Callable[[Tensor], bool], count: int, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_ready(Particular(refuses), torch.rand(count, 16, 4, 4), monkeypatch)
    assert made.runs_kernels
    assert made._products.as_given
    assert made.changes_input  # it might, with values that it was not shown
    assert calls


class Clamping(nn.Module):
    """Changes its input where no version tells of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(40, 40)

    def forward(self, x: Tensor) -> Tensor:
        x.data.clamp_(0, 1)
        return self.linear(x)


def test_what_a_network_does_to_its_input_is_seen_in_the_same_look(
    calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = torch.rand(5, 2, 2, 40)
    for f, changes in ((Clamping(), True), (Clamping().linear, False)):
        made = made_ready(f, y, monkeypatch)
        calls.clear()
        assert made.runs_kernels
        assert made.changes_input is changes
        assert not calls


def test_a_network_s_own_trouble_is_not_the_kernel_s(calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_ready(nn.Linear(40, 40), torch.rand(5, 2, 2, 30), monkeypatch)
    assert not made.runs_kernels
    with pytest.raises(RuntimeError, match="shapes"):
        made(torch.rand(5, 2, 2, 30))


def with_another_forward() -> nn.Module:
    layer = nn.Linear(32, 32)
    layer.forward = lambda x: x / 2  # type: ignore[method-assign]
    return layer


@pytest.mark.parametrize(
    ("f", "known"),
    [
        (FullyConnected((1, 4, 32), layers=3, width=8), True),
        (UNet(channels=1, widths=(4, 8)), True),
        (nn.Sequential(nn.Linear(32, 32), nn.Tanh()), True),
        (nn.Sequential(nn.Linear(32, 32), Halves()), False),
        (with_another_forward(), False),
        (TiedTwoLayer(torch.rand(8, 128)), False),
    ],
    ids=range(6),
)
def test_networks_of_known_modules_are_told_from_others(f: nn.Module, known: bool) -> None:
    with ready.ready(f, ROWS_OF_32, 1) as made:
        assert made.is_known_code is known


def test_a_function_is_not_known() -> None:
    with ready.ready(lambda x: x / 2, ROWS_OF_32, 1) as made:
        assert not made.is_known_code


@pytest.mark.parametrize("known", [True, False])
def test_networks_of_known_modules_are_not_watched_for_waiting(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, look_at = [], ready.look_at
    monkeypatch.setattr(ready, "look_at", lambda f, x, may_wait: (watched.append(may_wait), look_at(f, x, may_wait))[1])
    with ready.ready(nn.Linear(32, 32) if known else Halves(), ROWS_OF_32, 1) as made:
        assert made._look is not None
    assert watched == [not known]


def test_records_say_how_products_ran() -> None:
    assert ready.products_of(nn.Linear(32, 32), ROWS_OF_32) == BY_THE_LIBRARY


@gpu
def test_on_a_gpu_records_say_how_products_ran() -> None:
    f = nn.Linear(32, 32).cuda()
    assert ready.products_of(f, ROWS_OF_32) == TensorCores.in_words
    for other in (torch.compile(f), nn.Tanh().cuda()):
        assert ready.products_of(other, ROWS_OF_32) == BY_THE_LIBRARY


@pytest.mark.parametrize(
    ("value", "other", "near"),
    [
        (1.0, 1.0, True), (1.0, 1.0009, True), (1.0, 1.0011, False), (0.0, 0.0, True), (0.0, 1e-9, False),
        (torch.nan, torch.nan, True), (torch.inf, torch.inf, True), (torch.inf, -torch.inf, False),
        (1.0, torch.nan, False), (torch.nan, 1.0, False), (1.0, torch.inf, False),
    ],
)  # fmt: skip
def test_outcomes_are_nearly_equal_image_by_image(value: float, other: float, near: bool) -> None:
    """Each measured by its own largest value, whatever others have."""
    large = torch.full((1, 1, 2, 2), 1e6)
    images = torch.cat([large, torch.full_like(large, value)])
    others = torch.cat([large, torch.full_like(large, other)])
    assert ready._nearly_equal(others, images) is near
