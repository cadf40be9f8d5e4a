"""How weights are split and laid out; what the kernel makes of them is in test_tensor_cores.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from recollect.accelerate.tf32x3.packing import CHUNK, Way, pack, packed_bytes, packed_shape, way_of
from tests.accelerate.by_hand import ByHand, unpacked


@given(columns=st.integers(1, 9), channels=st.integers(1, 70), taps=st.sampled_from([None, (1, 1), (3, 3), (2, 4)]))
def test_a_packed_weight_is_the_weight(columns: int, channels: int, taps: tuple[int, int] | None) -> None:
    weight = torch.randn(columns, channels, *(taps or ()), generator=torch.Generator().manual_seed(channels))
    expected = (weight if taps else weight[:, :, None, None]).double()
    for way in {Way.PLAIN, way_of(weight.shape)}:
        packed = pack(weight, way)
        assert packed.upper.shape[3] % CHUNK == 0
        assert packed.upper.shape == packed.rest.shape == packed_shape(weight.shape, way)
        for part in packed:
            assert part.is_contiguous()
            assert not (part.view(torch.int32) & 0x1FFF).any()  # both in TF32
        assert bool(((unpacked(packed, weight.shape, way) - expected).abs() <= 2**-23 * expected.abs()).all())
        assert (packed.upper != 0).sum() == weight.numel()  # what it is filled up with is nothing


@pytest.mark.parametrize(
    ("weight", "stride", "scale", "way"),
    [
        ((64, 64, 3, 3), 1, 1, Way.PLAIN),
        ((64, 64, 3, 3), 1, 2, Way.DOUBLED),
        ((64, 3, 3, 3), 1, 1, Way.SPREAD),
        ((64, 3, 4, 4), 2, 1, Way.SPREAD),
        ((3, 3, 3, 3), 1, 1, Way.SPREAD),
        ((3, 64, 3, 3), 1, 1, Way.GATHERED),
        ((7, 64, 3, 3), 1, 1, Way.GATHERED),
        ((8, 64, 3, 3), 1, 1, Way.PLAIN),  # too many products of a pixel
        ((3, 64, 3, 3), 2, 1, Way.PLAIN),  # of most of which nothing is seen
        ((3, 64, 3, 3), 1, 2, Way.DOUBLED),
        ((3, 64, 1, 1), 1, 1, Way.PLAIN),
        ((3, 64), 1, 1, Way.PLAIN),
        ((64, 3), 1, 1, Way.PLAIN),
    ],
)
def test_the_way_is_told_by_shape_and_stride(weight: tuple[int, ...], stride: int, scale: int, way: Way) -> None:
    assert way_of(torch.Size(weight), stride, scale) is way


@pytest.mark.parametrize(
    ("layer", "ways"),
    [
        (nn.Conv2d(64, 24, 3), [Way.PLAIN, Way.DOUBLED]),
        (nn.Conv2d(64, 24, 5), [Way.PLAIN]),
        (nn.Conv2d(3, 24, 3), [Way.SPREAD]),
        (nn.Conv2d(64, 3, 3), [Way.GATHERED, Way.DOUBLED]),
        (nn.Linear(64, 24), [Way.PLAIN]),
    ],
)
def test_room_is_made_for_every_way_that_a_weight_may_be_needed(layer: nn.Module, ways: list[Way]) -> None:
    assert isinstance(layer.weight, nn.Parameter)
    packed = [part for way in ways for part in pack(layer.weight.detach(), way)]
    assert packed_bytes(layer.weight) == sum(part.nbytes for part in packed)


@pytest.mark.parametrize(
    ("weight", "taken"),
    [
        ((8, 16), True),
        ((8, 15), False),
        ((8, 16, 1, 1), True),
        ((8, 3, 1, 1), False),
        ((8, 3, 3, 3), True),
        ((8, 1, 4, 4), True),
        ((8, 1, 3, 5), False),  # a chunk would be half empty
        ((8, 1, 8, 8), True),
        ((8, 3, 5, 5), False),  # too many side by side
    ],
)
def test_layers_that_fill_chunks_are_taken(weight: tuple[int, ...], taken: bool) -> None:
    assert ByHand().take(torch.empty(weight)) is taken
