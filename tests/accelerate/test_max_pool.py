"""Feature maps halved, as PyTorch does it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect.accelerate.recognise import halves
from recollect.accelerate.tf32x3.launch import Call, halve
from tests.accelerate.by_hand import ByHand, on_a_cpu

USUAL: dict[str, Any] = {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
X = torch.rand(2, 20, 6, 8)


@pytest.mark.parametrize(
    ("size", "changed", "expected"),
    [
        (2, {}, True),
        ((2, 2), {"stride": 2}, True),
        (2, {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}, True),
        (3, {}, False),
        ((2, 1), {}, False),
        (2, {"stride": 1}, False),
        (2, {"padding": 1}, False),
        (2, {"dilation": 2}, False),
        (2, {"ceil_mode": True}, False),
        (2, {"return_indices": True}, False),
    ],
)
def test_halving_is_known_by_its_settings(size: Any, changed: dict[str, Any], expected: bool) -> None:
    assert halves(functional.max_pool2d, (X, size), USUAL | changed) is expected


def test_other_calls_halve_nothing() -> None:
    assert not halves(functional.avg_pool2d, (X, 2), USUAL)
    assert not halves(functional.max_pool2d, (X,), USUAL)
    assert not halves(functional.max_pool2d, (X, 2), None)
    assert not halves(functional.max_pool2d, (X, 2), {"stride": None})


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = []

    def counted(_: ByHand, maps: Tensor) -> Tensor:
        shapes.append(tuple(maps.shape))
        return functional.max_pool2d(maps, 2)

    monkeypatch.setattr(ByHand, "halve", counted)
    return shapes


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), lambda x: functional.max_pool2d(x, 2)])
def test_maps_are_halved_by_the_kernels_where_they_lie_channels_last(
    pool: Any, halved: list, calls: list[Call]
) -> None:
    layer = nn.Conv2d(20, 24, 3, padding=1)
    with torch.no_grad():
        plain = pool(layer(X))
        with on_a_cpu(layer):
            assert torch.allclose(pool(layer(X)), plain, atol=1e-5)
            pool(X)
    assert halved == [(2, 24, 6, 8)]
    assert len(calls) == 1


def test_maps_whose_negation_is_pending_are_the_library_s(halved: list) -> None:
    maps = torch._neg_view(X.to(memory_format=torch.channels_last))
    with torch.no_grad(), on_a_cpu(nn.Conv2d(20, 24, 3)):
        assert torch.equal(functional.max_pool2d(maps, 2), functional.max_pool2d(-X, 2))
    assert not halved


def test_gradients_are_the_library_s(halved: list) -> None:
    maps = X.to(memory_format=torch.channels_last).requires_grad_()
    with on_a_cpu(nn.Conv2d(20, 24, 3)):
        functional.max_pool2d(maps, 2).sum().backward()
    assert maps.grad is not None
    assert not halved


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2, 5, 6, 8), (1, 3, 7, 5), (3, 64, 32, 32), (2, 4, 2, 2), (1, 1, 3, 2)])
def test_the_kernel_gives_pytorch_s_bits(shape: tuple[int, ...]) -> None:
    maps = torch.randn(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    maps[maps > 1.5] = float("nan")
    maps[maps.abs() < 0.3] = -0.0
    maps[(maps.abs() < 0.5) & (maps != 0)] = 0.0
    maps = maps.to(memory_format=torch.channels_last)
    ours, plain = halve(maps), functional.max_pool2d(maps, 2)
    assert ours is not None
    assert torch.equal(ours.isnan(), plain.isnan())
    number = ~plain.isnan()
    assert torch.equal(ours[number].view(torch.int32), plain[number].view(torch.int32))


def test_maps_of_one_line_are_left_to_the_library() -> None:
    assert halve(torch.rand(2, 5, 1, 8)) is None
