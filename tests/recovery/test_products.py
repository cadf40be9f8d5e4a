"""What kernels are told of a call; what they make of it is in test_tensor_cores.py."""

import pytest
import torch

from recollect.recovery.products import Call, are_right

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
