from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect.per_image import PerImage


@dataclass(frozen=True, eq=False)
class Inner(PerImage):
    value: Tensor


@dataclass(frozen=True, eq=False)
class Outer(PerImage):
    number: Tensor
    inner: Inner | None
    label: str = "kept"


def outer(*numbers: int) -> Outer:
    values = torch.tensor(numbers)
    return Outer(values, Inner(values * 10), "mine")


def rows(some: Outer) -> tuple[list[int], list[int]]:
    assert some.inner is not None
    return some.number.tolist(), some.inner.value.tolist()


@pytest.mark.parametrize(
    ("index", "numbers"),
    [
        (slice(1, 3), [2, 3]),
        ([2, 0], [3, 1]),
        (torch.tensor([True, False, True]), [1, 3]),
        (torch.tensor([1]), [2]),
        (1, [2]),
        (-1, [3]),
    ],
)
def test_some_of_the_images_with_all_their_fields(index: object, numbers: list[int]) -> None:
    chosen = outer(1, 2, 3)[index]
    assert rows(chosen) == (numbers, [10 * n for n in numbers])
    assert chosen.label == "mine"
    assert len(chosen) == len(numbers)


def test_joining_keeps_the_order() -> None:
    joined = Outer.join([outer(1), outer(2, 3), outer(4)])
    assert rows(joined) == ([1, 2, 3, 4], [10, 20, 30, 40])
    assert type(joined.inner) is Inner


def test_missing_fields_stay_missing() -> None:
    parts = [Outer(torch.tensor([n]), None) for n in (1, 2)]
    assert Outer.join(parts).inner is None
    assert parts[0][:1].inner is None


def test_moving_takes_everything_along() -> None:
    moved = outer(1, 2).to("meta")
    assert moved.number.is_meta
    assert moved.inner is not None
    assert moved.inner.value.is_meta


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_everything_comes_to_the_host(device: str) -> None:
    here = outer(1, 2).to(device).to_host()
    assert rows(here) == ([1, 2], [10, 20])
    assert here.number.device.type == "cpu"
    assert here.label == "mine"


def test_images_are_put_in_their_places() -> None:
    room = outer(0).room_for(4)
    assert len(room) == 4
    assert room.label == "mine"
    room.put(torch.tensor([3, 0]), outer(7, 8))
    room.put(torch.tensor([1, 2]), outer(5, 6))
    assert rows(room) == ([8, 5, 6, 7], [80, 50, 60, 70])


def test_room_for_fields_that_are_missing() -> None:
    room = Outer(torch.tensor([1]), None).room_for(2)
    room.put(torch.tensor([1, 0]), Outer(torch.tensor([1, 2]), None))
    assert room.number.tolist() == [2, 1]
    assert room.inner is None


def test_room_lies_one_row_after_another_however_the_first_rows_lie() -> None:
    maps = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    room = Inner(maps).room_for(6)
    assert room.value.is_contiguous()
    assert torch.equal(room.value[5], maps[0])
