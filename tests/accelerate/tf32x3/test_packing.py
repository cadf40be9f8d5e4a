"""How weights are split and laid out; test_tensor_cores.py has what the kernels compute with them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from recollect.accelerate.tf32x3.lowering import CHUNK, Lowering, choose_lowering, packed_shape
from recollect.accelerate.tf32x3.packing import pack, packed_bytes
from tests.accelerate.by_hand import convolve, unpacked


@given(columns=st.integers(1, 9), channels=st.integers(1, 70), taps=st.sampled_from([None, (1, 1), (3, 3), (2, 4)]))
def test_a_packed_weight_is_the_weight(columns: int, channels: int, taps: tuple[int, int] | None) -> None:
    weight = torch.randn(columns, channels, *(taps or ()), generator=torch.Generator().manual_seed(channels))
    expected = (weight if taps else weight[:, :, None, None]).double()
    for lowering in {Lowering.IMPLICIT_GEMM, choose_lowering(weight.shape)}:
        packed = pack(weight, lowering)
        assert packed.upper.shape[3] % CHUNK == 0
        assert packed.upper.shape == packed.rest.shape == packed_shape(weight.shape, lowering)
        for part in packed:
            assert part.is_contiguous()
            assert not (part.view(torch.int32) & 0x1FFF).any()  # both in TF32
        assert bool(((unpacked(packed, weight.shape, lowering) - expected).abs() <= 2**-23 * expected.abs()).all())
        assert (packed.upper != 0).sum() == weight.numel()  # what it is filled up with is nothing


@pytest.mark.parametrize(
    ("layer", "lowerings"),
    [
        (nn.Conv2d(64, 24, 3), [Lowering.IMPLICIT_GEMM, Lowering.UPSAMPLED]),
        (nn.Conv2d(64, 24, 5), [Lowering.IMPLICIT_GEMM]),
        (nn.Conv2d(3, 24, 3), [Lowering.IM2COL]),
        (nn.Conv2d(64, 3, 3), [Lowering.COL2IM, Lowering.UPSAMPLED]),
        (nn.Linear(64, 24), [Lowering.IMPLICIT_GEMM]),
    ],
)
def test_memory_is_reserved_for_every_lowering_of_a_weight(layer: nn.Module, lowerings: list[Lowering]) -> None:
    assert isinstance(layer.weight, nn.Parameter)
    packed = [part for lowering in lowerings for part in pack(layer.weight.detach(), lowering)]
    assert packed_bytes(layer.weight) == sum(part.nbytes for part in packed)


@given(count=st.integers(1, 3), height=st.integers(1, 5), width=st.integers(1, 5), columns=st.integers(1, 4))
def test_taps_summed_by_phase_are_those_on_upsampled_images(count: int, height: int, width: int, columns: int) -> None:
    x, layer = (
        torch.randn(count, 20, height, width, generator=torch.Generator().manual_seed(count)).double(),
        nn.Conv2d(20, columns, 3, padding=1),
    )
    packed = pack(layer.weight.detach(), Lowering.UPSAMPLED)
    assert packed.upper.shape == (4 * columns, 2, 2, 32)
    for part in packed[:2]:
        assert not (part.view(torch.int32) & 0x1FFF).any()  # both in TF32
    whole = (packed.upper.double() + packed.rest.double()).permute(0, 3, 1, 2)
    assert not whole[:, 20:].any()
    layer = layer.double()
    assert layer.bias is not None
    exact = layer(functional.interpolate(x, scale_factor=2))
    assert torch.allclose(convolve(x, whole[:, :20], layer.bias, 1, (1, 1), 2), exact, atol=1e-6, rtol=0)
