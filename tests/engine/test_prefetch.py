from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect.engine.prefetch import Entrance
from recollect.per_image import PerImage


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
    [(10, 4, [4, 1, 0, 3, 2, 4, 4]), (3, 8, [8, 8]), (100, 16, [16] * 5 + [1, 90]), (5, 1, [1] * 7), (9, 9, [9, 9])],
)
def test_every_image_once_in_order(count: int, chunk: int, rooms: list[int], ahead: bool) -> None:
    got: list[int] = []
    with Entrance(count, chunk, enter, ahead=ahead) as entrance:
        for room in rooms:
            at_most = max(1, chunk // 8, len(got)) if ahead and count > chunk else count
            parts = entrance.take(room)
            assert sum(map(len, parts)) == min(room, count - len(got), at_most)
            got += [i for part in parts for i in part.index.tolist()]
            assert entrance.left == count - len(got)
    assert got == list(range(len(got)))
    assert len(got) == count or ahead


def test_with_others_made_ahead_the_first_are_few_and_double() -> None:
    with Entrance(1000, 64, enter, ahead=True) as entrance:
        assert [sum(map(len, entrance.take(64))) for _ in range(6)] == [8, 8, 16, 32, 64, 64]


def test_gradients_are_off_on_the_other_thread() -> None:
    with torch.no_grad(), Entrance(40, 8, enter, ahead=True) as entrance:
        assert not any(part.grad.any() for room in (8, 8, 8) for part in entrance.take(room))


def test_no_more_than_a_working_set_is_prepared_ahead() -> None:
    made: list[int] = []

    def watched(some: slice) -> Numbered:
        made.append(some.stop)
        return enter(some)

    for chunk, given in ((16, 2 + 2 + 4 + 8 + 16), (1, 5)):
        made.clear()
        with Entrance(10**6, chunk, watched, ahead=True) as entrance:
            for _ in range(5):
                entrance.take(chunk)
        assert max(made) <= given + chunk


def test_an_error_on_the_other_thread_arrives_and_ends_it() -> None:
    def fails(some: slice) -> Numbered:
        if some.start >= 8:
            raise ZeroDivisionError("its own trouble")
        return enter(some)

    with Entrance(100, 8, fails, ahead=True) as entrance:
        for _ in range(4):
            entrance.take(8)  # 1, 1, 2 and 4
        with pytest.raises(ZeroDivisionError, match="its own trouble"):
            entrance.take(8)


@pytest.mark.gpu
def test_on_a_gpu_what_was_prepared_aside_is_complete_when_it_is_handed_out() -> None:
    """Prepared in a stream of its own: nothing is used before it is there (the first block takes long to make), nor is
    its memory given away before it was used (the stream of the work is busy from then on)."""
    device, busy = torch.device("cuda"), torch.rand(3000, 3000, device="cuda")
    values = torch.arange(4000.0)[:, None].expand(-1, 5000)

    def enter_rows(some: slice) -> Numbered:
        rows = values[some].to(device)
        if some.start == 0:
            torch.cuda._sleep(10**8)  # cycles, a twentieth of a second
        rows = rows + 1
        return Numbered(rows, rows[:, :1])

    torch.cat([(values[:25].to(device) + 1).clone()] * 2)  # memory and kernels: to get them may wait for the device
    torch.cuda.synchronize()
    seen = []
    with Entrance(4000, 200, enter_rows, ahead=True, device=device) as entrance:
        while entrance.left:
            seen += [part.index.clone() for part in entrance.take(150)]
            for _ in range(20):
                busy = busy @ busy / 3000
    assert torch.equal(torch.cat(seen).cpu(), values + 1)
