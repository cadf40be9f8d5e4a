"""Captured steps on a CUDA device."""

import gc
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from recollect.devices.cuda_graph import capture, garbage_collection_paused, on_capture_stream, warm_up


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda", 0)


def test_garbage_collection_pauses_until_the_last_capture_ends() -> None:
    assert gc.isenabled()
    with garbage_collection_paused():
        with ThreadPoolExecutor(1) as another_thread, garbage_collection_paused():
            assert not another_thread.submit(gc.isenabled).result()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with garbage_collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.gpu
def test_garbage_with_a_graph_in_it_does_not_disturb_a_capture(
    device: torch.device, capfd: pytest.CaptureFixture[str]
) -> None:
    """CUDA refuses to destroy a graph in a thread that captures, and its capture fails."""
    x = torch.zeros(4, device=device)
    warm_up(lambda: x.add_(1), device)
    cycle: list[object] = [capture(lambda: x.add_(1), device)]
    cycle.append(cycle)
    del cycle

    def step() -> Tensor:
        _ = [[i] for i in range(100_000)]  # enough for several collections, were they not paused
        return x.add_(1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured = capture(step, device)
    assert "capturing" not in capfd.readouterr().err
    captured.replay()
    gc.collect()
    captured.replay()
    assert x.tolist() == [3.0] * 4


@pytest.mark.gpu
def test_a_replay_repeats_the_step_and_updates_what_it_returned(device: torch.device) -> None:
    x = torch.zeros(4, device=device)

    def step() -> Tensor:
        return x.add_(1) * 2

    warm_up(step, device, times=3)
    assert x.tolist() == [3.0] * 4
    captured = capture(step, device)
    assert x.tolist() == [3.0] * 4  # a capture runs nothing
    for count in (4.0, 5.0):
        captured.replay()
        assert x.tolist() == [count] * 4
        assert captured.returned.tolist() == [2 * count] * 4


@pytest.mark.gpu
def test_work_on_the_capture_stream_is_in_order_with_the_work_around(device: torch.device) -> None:
    x = torch.zeros(2**24, device=device)
    for _ in range(20):
        x.add_(1)
        with on_capture_stream(device):
            x.mul_(2)
    expected = 0.0
    for _ in range(20):
        expected = 2 * (expected + 1)
    assert bool((x == expected).all())


@pytest.mark.gpu
def test_streams_that_the_step_forks_are_captured_too(device: torch.device) -> None:
    x, side = torch.ones(8, device=device), torch.cuda.Stream(device)

    def step() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.mul_(3)
        torch.cuda.current_stream().wait_stream(side)

    warm_up(step, device)
    captured = capture(step, device)
    captured.replay()
    assert x.tolist() == [9.0] * 8


def read_back(device: torch.device) -> float:
    """Ask the host for a value, which no capture allows."""
    return float(torch.ones(1, device=device))


@pytest.mark.gpu
def test_after_an_error_the_device_works_as_before(device: torch.device) -> None:
    torch.cuda.manual_seed(0)
    expected = torch.rand(3, device=device)
    reserved = torch.cuda.memory_reserved()
    torch.cuda.manual_seed(0)
    with pytest.raises(RuntimeError):
        capture(lambda: read_back(device), device)
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.equal(torch.rand(3, device=device), expected)  # random numbers too
    assert read_back(device) == 1.0
    x = torch.zeros(4, device=device)
    captured = capture(lambda: x.add_(1), device)
    captured.replay()
    assert x.tolist() == [1.0] * 4
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved + 2**23  # later allocations do not go to the failed graph's pool


@pytest.mark.gpu
def test_an_error_of_the_step_itself_passes_through(device: torch.device) -> None:
    def step() -> None:
        torch.zeros(1, device=device)  # an empty graph is warned about
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture(step, device)
    assert read_back(device) == 1.0


@pytest.mark.gpu
def test_graphs_may_share_a_pool_of_memory(device: torch.device) -> None:
    pool = torch.cuda.graph_pool_handle()
    x = torch.zeros(4, device=device)
    add, double = (capture(step, device, pool) for step in (lambda: x.add_(1), lambda: x.mul_(2)))
    add.replay()
    double.replay()
    add.replay()
    assert x.tolist() == [3.0] * 4
