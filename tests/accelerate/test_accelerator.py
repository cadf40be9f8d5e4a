"""Networks in kernels: chosen if the network gives the same with them, and what a recovery learns of it on the way."""

import logging
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected
from recollect.accelerate import Accelerator
from recollect.accelerate.accelerator import BATCH_UNIT, nearly_equal
from recollect.accelerate.backend import Activation, LayerCall, LayerOutput
from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.accelerate.tf32x3.packing import Packed
from recollect.engine import Runtime, arithmetic_of, prepare
from recollect.engine.runtime import IN_PYTORCH
from tests.accelerate.by_hand import CPU, ByHand


class Reshaping(nn.Module):
    """Writes into its feature maps through a view, which is one only channels first."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.convolution(x)
        maps.reshape(len(x), -1).clamp_(-0.1, 0.1)
        return maps


class WithLength(nn.Conv2d):
    """Has a length that cannot be asked for, as what torch.compile makes of a layer has."""

    def __len__(self) -> int:
        raise TypeError("Conv2d does not support len()")


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(40, 40)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + torch.rand_like(x)


def accelerate(f: nn.Module, backend: ByHand) -> Accelerator:
    return Accelerator(f, list(f.modules()), CPU, images=5, known=True, backend=backend)


@torch.no_grad()
def test_a_network_that_cannot_say_its_length_is_called() -> None:
    f, x = WithLength(3, 3, 3, padding=1), torch.rand(5, 3, 4, 4)
    accelerator = Accelerator(f, [], CPU, images=5, known=False)
    assert torch.equal(accelerator(x, f), f(x))
    assert torch.equal(accelerator(x), f(x))


@pytest.mark.parametrize(
    ("f", "shape", "channels_last"),
    [
        (nn.Conv2d(16, 16, 3, padding=1), (5, 16, 4, 4), True),
        (Reshaping(), (5, 16, 4, 4), False),
    ],
)
@torch.no_grad()
def test_feature_maps_are_channels_last_if_the_network_agrees(
    f: nn.Module, shape: tuple[int, ...], channels_last: bool, by_hand: ByHand
) -> None:
    x, accelerator = torch.rand(shape), accelerate(f, by_hand)
    assert accelerator.agrees(accelerator, x, f(x))
    assert accelerator(x).is_contiguous(memory_format=torch.channels_last) is channels_last
    assert torch.allclose(accelerator(x), f(x), atol=1e-5)
    assert by_hand.calls


@pytest.mark.parametrize("known", [True, False])
@torch.no_grad()
def test_kernels_are_compiled_ahead_for_networks_of_known_code(known: bool, by_hand: ByHand) -> None:
    f, x = nn.Linear(40, 40), torch.rand(5, 40)
    accelerator = Accelerator(f, [f], CPU, images=600, known=known, backend=by_hand)
    assert accelerator.agrees(accelerator, x, f(x))
    by_hand.calls.clear()
    for rehearsal in by_hand.rehearsals:
        rehearsal()
    assert [len(call.x) for call in by_hand.calls] == ([64, 512] if known else [])


@torch.no_grad()
def test_kernels_that_are_dropped_run_no_more(by_hand: ByHand) -> None:
    f, x = nn.Linear(40, 40), torch.rand(5, 2, 2, 40)
    accelerator = accelerate(f, by_hand)
    assert accelerator.kernels_description == ByHand.description
    accelerator.drop_kernels()
    assert accelerator.kernels_description is None
    assert torch.equal(accelerator(x), f(x))
    assert not by_hand.calls


@pytest.mark.parametrize(
    ("f", "unit"), [(nn.Linear(40, 40), ByHand.tile_rows), (nn.Conv2d(16, 16, 3), BATCH_UNIT), (nn.Tanh(), BATCH_UNIT)]
)
def test_batches_of_linear_layers_are_rounded_up_to_whole_tiles(f: nn.Module, unit: int, by_hand: ByHand) -> None:
    assert accelerate(f, by_hand).batch_unit == unit


def test_the_memory_of_graphs_is_left_to_the_next_recovery(by_hand: ByHand) -> None:
    accelerator = accelerate(nn.Linear(40, 40), by_hand)
    pool = accelerator.graph_pool
    accelerator.close()
    assert CudaGraphPool.take(CPU) is pool


def test_an_accelerator_is_closed_after_a_recovery_unless_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Accelerator] = []
    monkeypatch.setattr(Accelerator, "close", lambda self: closed.append(self))
    f, y = FullyConnected((3, 8, 8), layers=2, width=8), torch.rand(2, 3, 8, 8)
    with prepare(f, y, None):
        assert not closed
    assert len(closed) == 1

    def fail() -> None:
        with prepare(f, y, None):
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        fail()
    assert len(closed) == 1


# In a recovery


def prepared(f: nn.Module, y: Tensor) -> Runtime:
    with prepare(f, y, 4) as runtime:
        return runtime


@pytest.mark.parametrize(
    ("f", "shape", "channels_last"),
    [
        (nn.Conv2d(16, 16, 3, padding=1), (5, 16, 4, 4), True),
        (Reshaping(), (5, 16, 4, 4), False),
        (nn.Sequential(nn.Linear(40, 40), nn.LeakyReLU()), (5, 2, 2, 40), False),
    ],
)
def test_networks_give_the_same_in_kernels(
    f: nn.Module, shape: tuple[int, ...], channels_last: bool, recoveries_by_hand: ByHand
) -> None:
    y = torch.rand(shape)
    runtime = prepared(f, y)
    assert runtime.arithmetic == ByHand.description
    recoveries_by_hand.calls.clear()
    with torch.no_grad():
        ours = runtime(y)
        assert torch.allclose(ours, f(y), atol=1e-5)
    assert ours.is_contiguous(memory_format=torch.channels_last) is channels_last
    assert recoveries_by_hand.calls


def test_comparing_kernels_to_pytorch_takes_two_calls_of_the_network(recoveries_by_hand: ByHand) -> None:
    f, sizes = nn.Sequential(nn.Linear(40, 40), nn.LeakyReLU()), []
    f.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    assert prepared(f, torch.rand(5, 2, 2, 40)).arithmetic == ByHand.description
    assert sizes == [4, 4]
    assert len(recoveries_by_hand.calls) == 1


def test_a_network_that_gives_something_else_in_kernels_runs_in_pytorch(
    recoveries_by_hand: ByHand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    f, y = Drawing(), torch.rand(5, 2, 2, 40)
    assert prepared(f, y).arithmetic == IN_PYTORCH
    assert "with ours the network gives other values; it may draw at random" in caplog.text
    assert arithmetic_of(f, y) == IN_PYTORCH
    assert arithmetic_of(f.linear, y) == ByHand.description


class Failing(ByHand):
    def run(self, call: LayerCall, packed: Packed, activation: Activation | None) -> LayerOutput:
        raise RuntimeError("cannot be compiled")


@torch.no_grad()
def test_a_network_that_fails_in_kernels_does_not_agree(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="recollect.accelerate")
    f, x = nn.Linear(40, 40), torch.rand(5, 2, 2, 40)
    accelerator = accelerate(f, Failing())
    assert not accelerator.agrees(accelerator, x, f(x))
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
def test_a_network_that_refuses_some_images_is_compared_on_its_own(
    refuses: Callable[[Tensor], bool], count: int, recoveries_by_hand: ByHand
) -> None:
    f, y = Particular(refuses), torch.rand(count, 16, 4, 4)
    runtime = prepared(f, y)
    assert runtime.arithmetic == ByHand.description
    assert runtime.changes_input  # it might, with values that it has not seen
    assert recoveries_by_hand.calls
    with torch.no_grad():
        assert torch.allclose(runtime(y), f(y), atol=1e-5)


class Clamping(nn.Module):
    """Changes its input without a change of version."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(40, 40)

    def forward(self, x: Tensor) -> Tensor:
        x.data.clamp_(0, 1)
        return self.linear(x)


def test_the_comparison_shows_what_a_network_does_to_its_input(recoveries_by_hand: ByHand) -> None:
    y = torch.rand(5, 2, 2, 40)
    for f, changes in ((Clamping(), True), (Clamping().linear, False)):
        runtime = prepared(f, y)
        recoveries_by_hand.calls.clear()
        assert runtime.arithmetic == ByHand.description
        assert runtime.changes_input is changes
        assert not recoveries_by_hand.calls


def test_an_error_of_the_network_itself_is_not_the_kernels(recoveries_by_hand: ByHand) -> None:
    runtime = prepared(nn.Linear(40, 40), torch.rand(5, 2, 2, 30))
    assert runtime.arithmetic == IN_PYTORCH
    with pytest.raises(RuntimeError, match="shapes"):
        runtime(torch.rand(5, 2, 2, 30))


@pytest.mark.gpu
def test_on_a_gpu_records_say_how_layers_are_computed() -> None:
    from recollect.accelerate.tf32x3.tensor_cores import TensorCores

    f, y = nn.Linear(32, 32).cuda(), torch.rand(5, 1, 4, 32)
    assert arithmetic_of(f, y) == TensorCores.description
    for other in (torch.compile(f), nn.Tanh().cuda()):
        assert arithmetic_of(other, y) == IN_PYTORCH


@pytest.mark.parametrize(
    ("value", "other", "near"),
    [
        (1.0, 1.0, True), (1.0, 1.0009, True), (1.0, 1.0011, False), (0.0, 0.0, True), (0.0, 1e-9, False),
        (torch.nan, torch.nan, True), (torch.inf, torch.inf, True), (torch.inf, -torch.inf, False),
        (1.0, torch.nan, False), (torch.nan, 1.0, False), (1.0, torch.inf, False),
    ],
)  # fmt: skip
def test_outputs_are_compared_image_by_image(value: float, other: float, near: bool) -> None:
    """Each by its own largest value."""
    large = torch.full((1, 1, 2, 2), 1e6)
    images = torch.cat([large, torch.full_like(large, value)])
    others = torch.cat([large, torch.full_like(large, other)])
    assert nearly_equal(others, images) is near
