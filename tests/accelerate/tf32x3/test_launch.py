"""What kernels are told of a call; what they make of it is in test_tensor_cores.py."""

import pytest
import torch

from recollect.accelerate.tf32x3 import launch as products
from recollect.accelerate.tf32x3.launch import Call, are_right

PROCESSORS = 132


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


@pytest.mark.parametrize(
    ("x", "weight", "padding", "most"),
    [
        ((2, 8, 8, 3), (4, 3, 3, 3), (1, 1), 2 * 64 * 32),  # what the taps see, side by side
        ((2, 8, 8, 20), (3, 20, 3, 3), (1, 1), 2 * 64 * 32),  # every pixel with every tap
        ((2, 8, 8, 40), (70, 40, 3, 3), (1, 1), 70 * 9 * 64),  # the packed weight
        ((9, 8, 8, 40), (70, 40, 3, 3), (1, 1), 9 * 64 * 70),  # the outcome
        ((9, 8, 8, 80), (10, 80, 3, 3), (0, 0), 9 * 64 * 80),
    ],
)
def test_what_the_kernels_meet_can_be_counted(
    x: tuple, weight: tuple, padding: tuple, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call(torch.empty(x), torch.empty(weight), None, padding=padding)
    for largest in (most, most + 1):
        monkeypatch.setattr(products, "LARGEST", largest)
        assert call.can_be_counted is (largest > most)


def test_tiles_side_by_side_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.empty(1, 4, 4, 20), torch.empty(130, 20, 3, 3)
    for scale, tiles in ((1, 3), (2, 12)):
        for most in (tiles - 1, tiles):
            monkeypatch.setattr(products, "MOST_TILES", most)
            assert Call(x, weight, None, padding=(1, 1), scale=scale).can_be_counted is (most == tiles)


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
