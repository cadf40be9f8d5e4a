"""What a launch is planned to be; test_tensor_cores.py has what it computes."""

import pytest
import torch

from recollect.accelerate.backend import LayerCall
from recollect.accelerate.tf32x3.launch_plan import (
    INT32_VALUES,
    MOST_COLUMN_TILES,
    column_tiles,
    fits_int32,
    largest_tensor,
    plan_launch,
)

PROCESSORS = 132


def call_of(
    x: tuple[int, ...], weight: tuple[int, ...], padding: tuple[int, int] = (0, 0), scale: int = 1
) -> LayerCall:
    """A call of any size: its tensors have no memory."""
    return LayerCall(torch.empty(x, device="meta"), torch.empty(weight, device="meta"), None, 1, padding, scale)


@pytest.mark.parametrize(
    ("x", "weight", "padding", "flat"),
    [
        ((9, 1, 1, 40), (24, 40), (0, 0), True),
        ((9, 1, 1, 40), (24, 40, 1, 1), (0, 0), True),
        ((9, 2, 1, 40), (24, 40, 1, 1), (0, 0), False),
        ((9, 1, 1, 40), (24, 40, 3, 3), (1, 1), False),
        ((9, 1, 1, 40), (24, 40, 1, 1), (1, 0), False),
    ],
)
def test_a_layer_without_pixels_is_flat(x: tuple, weight: tuple, padding: tuple, flat: bool) -> None:
    assert plan_launch(call_of(x, weight, padding), PROCESSORS).is_flat is flat


@pytest.mark.parametrize(
    ("x", "weight", "padding", "scale", "most"),
    [
        ((2, 8, 8, 3), (4, 3, 3, 3), (1, 1), 1, 2 * 64 * 32),  # im2col
        ((2, 8, 8, 20), (3, 20, 3, 3), (1, 1), 1, 2 * 64 * 32),  # every pixel with every tap, for col2im
        ((2, 8, 8, 40), (70, 40, 3, 3), (1, 1), 1, 70 * 9 * 64),  # the packed weight
        ((2, 3, 5, 20), (30, 20, 3, 3), (1, 1), 2, 30 * 16 * 32),  # the packed weight of four phases
        ((9, 8, 8, 40), (70, 40, 3, 3), (1, 1), 1, 9 * 64 * 70),  # the output
        ((9, 8, 8, 80), (10, 80, 3, 3), (0, 0), 1, 9 * 64 * 80),  # the input
    ],
)
def test_the_largest_tensor_is_known(x: tuple, weight: tuple, padding: tuple, scale: int, most: int) -> None:
    assert largest_tensor(call_of(x, weight, padding, scale)) == most


def test_tensors_are_addressed_in_32_bits() -> None:
    rows = INT32_VALUES // 64
    for count, fits in ((rows - 1, True), (rows, False)):
        assert fits_int32(call_of((count, 1, 1, 64), (24, 64))) is fits
    assert not fits_int32(call_of((2, 6, 6, 32), (16, 32, 9, 9)))  # no output


@pytest.mark.parametrize(("scale", "tiles"), [(1, 3), (2, 12)])
def test_tiles_side_by_side_are_counted(scale: int, tiles: int) -> None:
    assert column_tiles(call_of((1, 4, 4, 20), (130, 20, 3, 3), (1, 1), scale)) == tiles


def test_tiles_side_by_side_have_a_limit() -> None:
    for columns, fits in ((64 * MOST_COLUMN_TILES, True), (64 * MOST_COLUMN_TILES + 1, False)):
        assert fits_int32(call_of((1, 1, 1, 16), (columns, 16))) is fits
