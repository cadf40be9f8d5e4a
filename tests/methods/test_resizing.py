import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.methods.resizing import Resizing, area_means


@given(small=st.integers(1, 12), more=st.integers(0, 20))
def test_averages_over_equal_stretches_that_cover_all_pixels(small: int, more: int) -> None:
    large = small + more
    rows = area_means(small, large)
    assert torch.allclose(rows.sum(1), torch.ones(small, dtype=torch.float64))
    assert torch.allclose(rows.sum(0), torch.full((large,), small / large, dtype=torch.float64))


@given(h=st.integers(1, 8), w=st.integers(1, 8), taller=st.integers(0, 9), wider=st.integers(0, 9))
def test_up_is_a_right_inverse_of_down(h: int, w: int, taller: int, wider: int) -> None:
    x = torch.rand(2, 3, h, w, dtype=torch.float64)
    size = Resizing((h, w), (h + taller, w + wider), x)
    assert size.up(x).shape == (2, 3, h + taller, w + wider)
    assert torch.allclose(size.down(size.up(x)), x)


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_for_whole_factors_up_repeats_pixels_and_down_averages_blocks(factor: int) -> None:
    x = torch.rand(1, 1, 5, 4, dtype=torch.float64)
    size = Resizing((5, 4), (5 * factor, 4 * factor), x)
    assert np.allclose(size.up(x)[0, 0], np.kron(x[0, 0], np.ones((factor, factor))))
    large = torch.rand(1, 1, 5 * factor, 4 * factor, dtype=torch.float64)
    assert torch.allclose(size.down(large), torch.nn.functional.avg_pool2d(large, factor))
