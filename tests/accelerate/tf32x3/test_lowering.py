import pytest
import torch

from recollect.accelerate.tf32x3.lowering import Lowering, choose_lowering


@pytest.mark.parametrize(
    ("weight", "stride", "scale", "lowering"),
    [
        ((64, 64, 3, 3), 1, 1, Lowering.IMPLICIT_GEMM),
        ((64, 64, 3, 3), 1, 2, Lowering.UPSAMPLED),
        ((64, 3, 3, 3), 1, 1, Lowering.IM2COL),
        ((64, 3, 4, 4), 2, 1, Lowering.IM2COL),
        ((3, 3, 3, 3), 1, 1, Lowering.IM2COL),
        ((3, 64, 3, 3), 1, 1, Lowering.COL2IM),
        ((7, 64, 3, 3), 1, 1, Lowering.COL2IM),
        ((8, 64, 3, 3), 1, 1, Lowering.IMPLICIT_GEMM),  # too many columns for a pixel
        ((3, 64, 3, 3), 2, 1, Lowering.IMPLICIT_GEMM),  # most of them are never read
        ((3, 64, 3, 3), 1, 2, Lowering.UPSAMPLED),
        ((3, 64, 1, 1), 1, 1, Lowering.IMPLICIT_GEMM),
        ((3, 64), 1, 1, Lowering.IMPLICIT_GEMM),
        ((64, 3), 1, 1, Lowering.IMPLICIT_GEMM),
    ],
)
def test_shape_and_stride_choose_the_lowering(
    weight: tuple[int, ...], stride: int, scale: int, lowering: Lowering
) -> None:
    assert choose_lowering(torch.Size(weight), stride, scale) is lowering
