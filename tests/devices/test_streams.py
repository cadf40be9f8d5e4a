"""CUDA streams for captures and copies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from recollect.devices.streams import side_streams


@pytest.mark.gpu
@pytest.mark.parametrize("made_before", range(0, 34, 3))
def test_streams_are_distinct_however_many_were_made_before(made_before: int) -> None:
    """PyTorch hands out 32 streams in turn."""
    others = [torch.cuda.Stream() for _ in range(made_before)]
    with ThreadPoolExecutor(1) as another_thread:
        streams = another_thread.submit(side_streams, torch.device("cuda")).result()
    assert len(others) == made_before
    assert len({stream.cuda_stream for stream in streams}) == 3


@pytest.mark.gpu
def test_a_thread_has_the_same_streams_always() -> None:
    assert side_streams(torch.device("cuda")) is side_streams(torch.device("cuda"))
