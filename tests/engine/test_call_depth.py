"""From a method to the network: the frames that CONTRIBUTING.md promises, as a traceback shows them."""

import inspect
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

import recollect
from recollect import Blind, KnownMask, mask
from recollect.engine import without_acceleration

ROOT = Path(__file__).parents[2]
PACKAGE = Path(recollect.__file__).parent
NUMBERS = {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}


def promised() -> tuple[int, int]:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    found = re.search(r"(\w+) frames with the plain loop and (\w+) with fused steps", text)
    assert found
    plain, fused = (NUMBERS[word] for word in found.groups())
    return plain, fused


def frames_to_the_network(method: Blind | KnownMask) -> int:
    """Count recollect's frames between the caller and f, the most of all calls."""
    counts: list[int] = []

    def f(x: Tensor) -> Tensor:
        frame, count = inspect.currentframe(), 0
        while frame is not None and frame.f_code is not frames_to_the_network.__code__:
            count += Path(frame.f_code.co_filename).is_relative_to(PACKAGE)
            frame = frame.f_back
        counts.append(count)
        return x / 2

    truth = mask("half", (1, 4, 4))
    method(f, truth.apply(torch.rand(3, 1, 4, 4)), truth)
    return max(counts)


@pytest.mark.parametrize("method", [Blind(limit=1), KnownMask()], ids=lambda method: method.name)
def test_the_network_is_as_near_to_a_method_as_contributing_says(method: Blind | KnownMask) -> None:
    plain, fused = promised()
    with without_acceleration():
        assert frames_to_the_network(method) == plain
    assert frames_to_the_network(method) <= fused
