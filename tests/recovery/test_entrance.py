from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect.per_image import PerImage
from recollect.recovery.entrance import Entrance


@dataclass(frozen=True, eq=False)
class Numbered(PerImage):
    index: Tensor
    grad: Tensor


def enter(some: slice) -> Numbered:
    index = torch.arange(10**6)[some]
    return Numbered(index, torch.full_like(index, torch.is_grad_enabled()))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("count", "chunk", "rooms"),
    [(10, 4, [4, 1, 0, 3, 2, 4]), (3, 8, [8, 8]), (100, 16, [16, 16, 16, 1, 60]), (5, 1, [1] * 7), (9, 9, [9, 9])],
)
def test_every_image_once_in_order(count: int, chunk: int, rooms: list[int], ahead: bool) -> None:
    got: list[int] = []
    with Entrance(count, chunk, enter, ahead=ahead) as entrance:
        for room in rooms:
            parts = entrance.take(room)
            expected = min(room, count - len(got))
            assert sum(map(len, parts)) == expected
            got += [i for part in parts for i in part.index.tolist()]
            assert entrance.left == count - len(got)
    assert got == list(range(min(count, sum(rooms))))


def test_gradients_are_off_on_the_other_thread() -> None:
    with torch.no_grad(), Entrance(40, 8, enter, ahead=True) as entrance:
        assert not any(part.grad.any() for room in (8, 8, 8) for part in entrance.take(room))


def test_no_more_than_a_working_set_is_prepared_ahead() -> None:
    made: list[int] = []

    def watched(some: slice) -> Numbered:
        made.append(some.stop)
        return enter(some)

    with Entrance(10**6, 16, watched, ahead=True) as entrance:
        for _ in range(5):
            entrance.take(16)
    assert max(made) <= 6 * 16


def test_an_error_on_the_other_thread_arrives_and_ends_it() -> None:
    def fails(some: slice) -> Numbered:
        if some.start >= 8:
            raise ZeroDivisionError("its own trouble")
        return enter(some)

    with Entrance(100, 8, fails, ahead=True) as entrance:
        entrance.take(8)
        with pytest.raises(ZeroDivisionError, match="its own trouble"):
            entrance.take(8)
