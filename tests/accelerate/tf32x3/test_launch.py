"""Kernels beside the matrix multiplication. What needs a CUDA device is run by make test-gpu."""

import pytest
import torch
from torch.nn import functional

from recollect.accelerate.tf32x3.launch import admm_step, max_pool, upsample
from tests.accelerate import by_hand

gpu = pytest.mark.gpu
CHANNELS_LAST = torch.channels_last


@gpu
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 5, 3, 4), (50, 512, 4, 4), (9, 128, 16, 16), (3, 7, 1, 2)])
def test_upsampled_maps_are_pytorch_s(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device="cuda").to(memory_format=CHANNELS_LAST)
    ours = upsample(x)
    assert ours is not None
    assert torch.equal(ours, functional.interpolate(x, scale_factor=2))
    assert ours.is_contiguous(memory_format=CHANNELS_LAST)


@gpu
@pytest.mark.parametrize("shape", [(2, 5, 6, 8), (1, 3, 7, 5), (3, 64, 32, 32), (2, 4, 2, 2), (1, 1, 3, 2)])
def test_max_pooled_maps_have_pytorch_s_bits(shape: tuple[int, ...]) -> None:
    maps = torch.randn(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    maps[maps > 1.5] = float("nan")
    maps[maps.abs() < 0.3] = -0.0
    maps[(maps.abs() < 0.5) & (maps != 0)] = 0.0
    maps = maps.to(memory_format=CHANNELS_LAST)
    ours, plain = max_pool(maps), functional.max_pool2d(maps, 2)
    assert ours is not None
    assert torch.equal(ours.isnan(), plain.isnan())
    number = ~plain.isnan()
    assert torch.equal(ours[number].view(torch.int32), plain[number].view(torch.int32))


def test_maps_of_one_line_are_left_to_pytorch() -> None:
    assert max_pool(torch.rand(2, 5, 1, 8)) is None


def test_maps_too_large_to_address_are_left_to_pytorch() -> None:
    maps = torch.empty(2**13, 2**8, 2**4, 2**4, device="meta")  # 2**29 values: four times as many need 32 bits
    assert upsample(maps) is None
    assert max_pool(maps) is None


@gpu
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (5, 3, 7, 9), (64, 3, 64, 64)])
@pytest.mark.parametrize("kind", ["plain", "negated", "channels last", "float64"])
def test_the_admm_step_is_that_of_the_formula(shape: tuple[int, ...], kind: str) -> None:
    w, v, of_y, of_w = torch.rand(4, *shape, device="cuda", dtype=torch.float64 if kind == "float64" else torch.float32)
    if kind == "negated":
        v = torch.complex(v, -v).conj().imag
    if kind == "channels last":
        v = v.to(memory_format=CHANNELS_LAST)
    expected = w.clone()
    by_hand.admm_step(expected, v, of_y, of_w)
    admm_step(w, v, of_y, of_w)
    assert torch.allclose(w, expected, rtol=1e-6, atol=1e-6)
