"""How weights are split and products cut up; what the kernel makes of them is in test_tensor_cores.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.products import (
    CHUNK,
    Call,
    are_right,
    filled_size,
    in_tf32,
    pack,
)

PROCESSORS = 132


@given(st.floats(2.0**-90, 2.0**90, width=32), st.sampled_from([1, -1]))
def test_a_number_is_the_sum_of_two_in_tf32_but_for_what_float32_rounds(value: float, sign: int) -> None:
    x = torch.tensor([sign * value])
    upper = in_tf32(x)
    rest = x - upper
    assert (upper.view(torch.int32) & 0x1FFF).item() == 0  # ten bits behind the leading one
    assert upper.double() + rest.double() == x.double()  # nothing is lost in the difference
    cut_off = (rest.view(torch.int32) & ~0x1FFF).view(torch.float32)  # what tensor cores see of it
    assert abs(x.double() - upper.double() - cut_off.double()) <= 2**-22 * abs(x.double())


@given(columns=st.integers(1, 5), channels=st.integers(1, 70), taps=st.sampled_from([None, (1, 1), (3, 3), (2, 4)]))
def test_a_packed_weight_is_the_weight(columns: int, channels: int, taps: tuple[int, int] | None) -> None:
    weight = torch.randn(columns, channels, *(taps or ()), generator=torch.Generator().manual_seed(channels))
    packed = pack(weight)
    assert packed.upper.shape[3] % CHUNK == 0
    assert packed.upper.numel() == filled_size(weight.shape)
    for part in packed[:2]:
        assert not (part.view(torch.int32) & 0x1FFF).any()  # both in TF32
    whole = (packed.upper.double() + packed.rest.double()).permute(0, 3, 1, 2)
    expected = (weight if taps else weight[:, :, None, None]).double()
    assert bool(((whole[:, :channels] - expected).abs() <= 2**-23 * expected.abs()).all())
    assert not whole[:, channels:].any()


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
def test_rows_of_x_make_rows_of_the_outcome(x: tuple, weight: tuple, padding: tuple, flat: bool) -> None:
    assert Call(torch.rand(x), torch.rand(weight), None, padding=padding).plan(PROCESSORS).is_flat is flat


def test_kernels_are_had_where_first_products_are_right() -> None:
    def fails() -> bool:
        raise ImportError("no compiler")

    def fills_the_memory() -> bool:
        raise torch.cuda.OutOfMemoryError("full")

    words: list[str] = []

    def note(text: str, *given: object) -> None:
        words.append(text % given)

    assert are_right("the kernel", lambda: True, note)
    assert not words
    assert not are_right("the kernel", lambda: False, note)
    assert not are_right("oneDNN", fails, note)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        are_right("the kernel", fills_the_memory, note)
    assert words == [
        "Products run in the library: the kernel's first products are wrong.",
        "Products run in the library: oneDNN cannot be had (ImportError: no compiler).",
    ]
