import threading

import pytest
import torch

from recollect import Blind, FullyConnected, mask
from recollect.accelerate import cuda_graph_pool as graph_memory
from recollect.accelerate.cuda_graph_pool import GraphMemory
from recollect.devices.cuda_graph import CapturedStep
from recollect.engine.runtime import ready

gpu = pytest.mark.gpu
HERE = torch.device("cpu")  # who has the memory is the same everywhere
SHAPE = (3, 8, 8)


def test_memory_is_handed_on_to_one_at_a_time() -> None:
    first = GraphMemory.take(HERE)
    second = GraphMemory.take(HERE)
    assert second is not first
    first.give_back()
    assert GraphMemory.take(HERE) is first
    assert GraphMemory.take(HERE) is not first


def test_another_thread_has_its_own() -> None:
    mine, others = GraphMemory.take(HERE), []
    mine.give_back()
    thread = threading.Thread(target=lambda: others.append(GraphMemory.take(HERE)))
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert GraphMemory.take(HERE) is mine


def test_a_recovery_gives_its_memory_back_unless_it_fails() -> None:
    f, y = FullyConnected(SHAPE, layers=2, width=8), torch.rand(2, *SHAPE)
    with ready(f, y, None) as settled:
        used = settled.graph_memory
    assert GraphMemory.take(HERE) is used

    def fail() -> None:
        with ready(f, y, None) as settled:
            assert settled.graph_memory is not used
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        fail()
    assert str(HERE) not in vars(graph_memory._idle)


def test_only_a_little_is_given_back() -> None:
    memory = GraphMemory.take(HERE)
    pool = memory._pool = object()
    memory._bytes = graph_memory.MOST
    memory.give_back()
    assert GraphMemory.take(HERE)._pool is pool
    memory._bytes = graph_memory.MOST + 1
    memory.give_back()
    assert GraphMemory.take(HERE)._pool is None


def capture(memory: GraphMemory, megabytes: int) -> CapturedStep[torch.Tensor]:
    return memory.capture(lambda: torch.ones(megabytes, 2**20, dtype=torch.uint8, device=memory.device))


@gpu
def test_memory_of_graphs_that_are_gone_is_used_again() -> None:
    memory = GraphMemory(torch.device("cuda", 0))
    capture(memory, 64).replay()
    reserved = torch.cuda.memory_reserved()
    for _ in range(5):
        capture(memory, 64).replay()
    assert torch.cuda.memory_reserved() == reserved


@gpu
def test_much_memory_is_not_kept() -> None:
    torch.cuda.empty_cache()
    memory, before = GraphMemory(torch.device("cuda", 0)), torch.cuda.memory_reserved()
    capture(memory, 100)
    memory.trim()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() >= before + 100 * 2**20  # a little stays
    capture(memory, 400)
    memory.trim()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before
    capture(memory, 1).replay()


@gpu
def test_one_recovery_after_another_takes_no_more_memory() -> None:
    f, y = FullyConnected(SHAPE, layers=4, width=256).cuda(), mask("block", SHAPE).apply(torch.rand(40, *SHAPE)).cuda()
    reserved = []
    for _ in range(6):
        Blind(limit=3)(f, y)
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] == reserved[1]


@gpu
def test_a_recovery_inside_another_has_memory_of_its_own() -> None:
    f, y = FullyConnected(SHAPE, layers=4, width=256).cuda(), mask("block", SHAPE).apply(torch.rand(40, *SHAPE)).cuda()
    alone = Blind(limit=3)(f, y)
    inner: list[torch.Tensor] = []
    outer = Blind(limit=3)(f, y, trace=lambda _: inner.append(Blind(limit=3)(f, y).estimate))
    for estimate in (outer.estimate, *inner):
        assert torch.equal(estimate, alone.estimate)


@gpu
def test_after_a_capture_that_failed_memory_can_be_used() -> None:
    memory = GraphMemory(torch.device("cuda", 0))
    with pytest.raises(RuntimeError):
        memory.capture(lambda: torch.ones(1, device=memory.device).cpu())
    capture(memory, 1).replay()
    torch.cuda.synchronize()
