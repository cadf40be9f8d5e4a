import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.devices.tf32 import round_to_tf32, split_tf32

magnitudes = st.floats(2.0**-90, 2.0**90, width=32)
signs = st.sampled_from([1, -1])


@given(magnitudes, signs)
def test_a_number_is_exactly_the_sum_of_its_parts(magnitude: float, sign: int) -> None:
    x = torch.tensor([sign * magnitude])
    high, low = split_tf32(x)
    assert (high.view(torch.int32) & 0x1FFF).item() == 0  # ten bits behind the leading one
    assert high.double() + low.double() == x.double()
    assert abs(low) <= 2**-11 * abs(x)
    seen_by_tensor_cores = (low.view(torch.int32) & ~0x1FFF).view(torch.float32)
    assert abs(x.double() - high.double() - seen_by_tensor_cores.double()) <= 2**-22 * abs(x.double())


@given(magnitudes, signs)
def test_rounding_finds_the_nearest_number(magnitude: float, sign: int) -> None:
    x = torch.tensor([sign * magnitude])
    fraction, exponent = math.frexp(float(x))
    unit = 2.0 ** (exponent - 11)
    assert abs(float(round_to_tf32(x)) - float(x)) <= unit / 2
    assert (float(round_to_tf32(x)) / unit).is_integer()
    assert 0.5 <= abs(fraction) < 1


def test_float64_is_split_to_more_bits_than_float32_has() -> None:
    x = torch.tensor([1 + 2.0**-12 + 2.0**-30], dtype=torch.float64)
    high, low = split_tf32(x)
    assert (high.dtype, low.dtype) == (torch.float32, torch.float32)
    assert float(high) == 1.0
    assert high.double() + low.double() == x


def test_what_is_not_finite_stays_visible() -> None:
    for value in (math.nan, math.inf, -math.inf):
        high, low = split_tf32(torch.tensor([value]))
        assert not torch.isfinite(high + low)
