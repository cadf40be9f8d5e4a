from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect.engine.prefetch import Prefetcher
from recollect.per_image import PerImage
from tests.devices.busy import keep_busy


@dataclass(frozen=True, eq=False)
class Numbered(PerImage):
    index: Tensor
    grad: Tensor


def begin(rows: slice) -> Numbered:
    index = torch.arange(10**6)[rows]
    return Numbered(index, torch.full_like(index, torch.is_grad_enabled()))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("count", "chunk", "rooms"),
    [(10, 4, [4, 1, 0, 3, 2, 4, 4]), (3, 8, [8, 8]), (100, 16, [16] * 5 + [1, 90]), (5, 1, [1] * 7), (9, 9, [9, 9])],
)
def test_every_image_once_in_order(count: int, chunk: int, rooms: list[int], ahead: bool) -> None:
    got: list[int] = []
    with Prefetcher(count, chunk, begin, ahead=ahead) as prefetcher:
        for room in rooms:
            at_most = max(1, chunk // 8, len(got)) if ahead and count > chunk else count
            parts = prefetcher.take(room)
            assert sum(map(len, parts)) == min(room, count - len(got), at_most)
            got += [i for part in parts for i in part.index.tolist()]
            assert prefetcher.left == count - len(got)
    assert got == list(range(len(got)))
    assert len(got) == count or ahead


def test_with_prefetching_the_first_parts_are_small_and_double() -> None:
    with Prefetcher(1000, 64, begin, ahead=True) as prefetcher:
        assert [sum(map(len, prefetcher.take(64))) for _ in range(6)] == [8, 8, 16, 32, 64, 64]


def test_gradients_are_off_on_the_other_thread() -> None:
    with torch.no_grad(), Prefetcher(40, 8, begin, ahead=True) as prefetcher:
        assert not any(part.grad.any() for room in (8, 8, 8) for part in prefetcher.take(room))


def test_no_more_than_a_working_set_is_prepared_ahead() -> None:
    made: list[int] = []

    def watched(rows: slice) -> Numbered:
        made.append(rows.stop)
        return begin(rows)

    for chunk, given in ((16, 2 + 2 + 4 + 8 + 16), (1, 5)):
        made.clear()
        with Prefetcher(10**6, chunk, watched, ahead=True) as prefetcher:
            for _ in range(5):
                prefetcher.take(chunk)
        assert max(made) <= given + chunk


def test_an_error_on_the_other_thread_arrives_and_ends_it() -> None:
    def fails(rows: slice) -> Numbered:
        if rows.start >= 8:
            raise ZeroDivisionError("its own trouble")
        return begin(rows)

    with Prefetcher(100, 8, fails, ahead=True) as prefetcher:
        for _ in range(4):
            prefetcher.take(8)  # 1, 1, 2 and 4
        with pytest.raises(ZeroDivisionError, match="its own trouble"):
            prefetcher.take(8)


@pytest.mark.gpu
def test_on_a_gpu_prefetched_images_are_complete_when_they_are_handed_out() -> None:
    """A block is not read before it is complete (the first takes long), and its memory is not reused before it was read
    (the stream of the steps is busy from then on)."""
    device, busy = torch.device("cuda"), torch.rand(3000, 3000, device="cuda")
    values = torch.arange(4000.0)[:, None].expand(-1, 5000)

    def begin_slowly(rows: slice) -> Numbered:
        copied = values[rows].to(device)
        if rows.start == 0:
            keep_busy()
        copied = copied + 1
        return Numbered(copied, copied[:, :1])

    torch.cat([(values[:25].to(device) + 1).clone()] * 2)  # memory and kernels: to get them may wait for the device
    torch.cuda.synchronize()
    seen = []
    with Prefetcher(4000, 200, begin_slowly, ahead=True, device=device) as prefetcher:
        while prefetcher.left:
            seen += [part.index.clone() for part in prefetcher.take(150)]
            for _ in range(20):
                busy = busy @ busy / 3000
    assert torch.equal(torch.cat(seen).cpu(), values + 1)
