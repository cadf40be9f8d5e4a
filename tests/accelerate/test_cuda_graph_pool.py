import threading

import pytest
import torch

from recollect import Blind, FullyConnected, mask
from recollect.accelerate.cuda_graph_pool import MOST_KEPT, CudaGraphPool
from recollect.devices.cuda_graph import CapturedStep

gpu = pytest.mark.gpu
HERE = torch.device("cpu")  # a pool is taken and released alike on every device
SHAPE = (3, 8, 8)


def test_a_pool_is_taken_by_one_recovery_at_a_time() -> None:
    first = CudaGraphPool.take(HERE)
    second = CudaGraphPool.take(HERE)
    assert second is not first
    first.release()
    assert CudaGraphPool.take(HERE) is first
    assert CudaGraphPool.take(HERE) is not first


def test_another_thread_has_its_own() -> None:
    mine, others = CudaGraphPool.take(HERE), []
    mine.release()
    thread = threading.Thread(target=lambda: others.append(CudaGraphPool.take(HERE)))
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert CudaGraphPool.take(HERE) is mine


@pytest.mark.parametrize(("reserved", "kept"), [(MOST_KEPT, MOST_KEPT), (MOST_KEPT + 1, 0)])
def test_only_a_small_pool_is_kept(reserved: int, kept: int) -> None:
    pool = CudaGraphPool.take(HERE)
    pool.reserved = reserved
    pool.release()
    assert CudaGraphPool.take(HERE).reserved == kept


def capture(pool: CudaGraphPool, megabytes: int) -> CapturedStep[torch.Tensor]:
    return pool.capture(lambda: torch.ones(megabytes, 2**20, dtype=torch.uint8, device=pool.device))


@gpu
def test_memory_of_graphs_that_are_gone_is_used_again() -> None:
    pool = CudaGraphPool(torch.device("cuda", 0))
    capture(pool, 64).replay()
    reserved = torch.cuda.memory_reserved()
    for _ in range(5):
        capture(pool, 64).replay()
    assert torch.cuda.memory_reserved() == reserved


@gpu
def test_much_memory_is_not_kept() -> None:
    torch.cuda.empty_cache()
    pool, before = CudaGraphPool(torch.device("cuda", 0)), torch.cuda.memory_reserved()
    capture(pool, 100)
    pool.trim()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() >= before + 100 * 2**20  # a little stays
    capture(pool, 400)
    pool.trim()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before
    capture(pool, 1).replay()


@gpu
def test_one_recovery_after_another_takes_no_more_memory() -> None:
    f, y = FullyConnected(SHAPE, layers=4, width=256).cuda(), mask("block", SHAPE).apply(torch.rand(40, *SHAPE)).cuda()
    reserved = []
    for _ in range(6):
        Blind(limit=3)(f, y)
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] == reserved[1]


@gpu
def test_a_recovery_inside_another_has_its_own_pool() -> None:
    f, y = FullyConnected(SHAPE, layers=4, width=256).cuda(), mask("block", SHAPE).apply(torch.rand(40, *SHAPE)).cuda()
    alone = Blind(limit=3)(f, y)
    inner: list[torch.Tensor] = []
    outer = Blind(limit=3)(f, y, trace=lambda _: inner.append(Blind(limit=3)(f, y).estimate))
    for estimate in (outer.estimate, *inner):
        assert torch.equal(estimate, alone.estimate)


@gpu
def test_a_recovery_gives_its_pool_back_unless_it_fails() -> None:
    device = torch.device("cuda", 0)
    f, y = FullyConnected(SHAPE, layers=4, width=256).to(device), mask("block", SHAPE).apply(torch.rand(40, *SHAPE))
    pool = CudaGraphPool(device)
    pool.release()
    Blind(limit=3)(f, y.to(device))
    assert CudaGraphPool.take(device) is pool

    def fail(_: object) -> None:
        raise ValueError("on the way")

    pool.release()
    with pytest.raises(ValueError, match="on the way"):
        Blind(limit=3)(f, y.to(device), trace=fail)
    assert CudaGraphPool.take(device) is not pool


@gpu
def test_after_a_capture_that_failed_the_pool_can_be_used() -> None:
    pool = CudaGraphPool(torch.device("cuda", 0))
    with pytest.raises(RuntimeError):
        pool.capture(lambda: torch.ones(1, device=pool.device).cpu())
    capture(pool, 1).replay()
    torch.cuda.synchronize()
