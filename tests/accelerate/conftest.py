from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from recollect.accelerate import dispatch
from tests.accelerate.by_hand import ByHand


@pytest.fixture
def by_hand() -> ByHand:
    return ByHand()


@pytest.fixture
def recoveries_by_hand(by_hand: ByHand, monkeypatch: pytest.MonkeyPatch) -> ByHand:
    """The backend of all recoveries: these choose one by their device, and take none as an argument."""
    monkeypatch.setattr(dispatch, "backend_for", lambda _: by_hand)
    return by_hand


class CountActivations(TorchDispatchMode):
    """How often PyTorch's own leaky ReLU runs."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket is torch.ops.aten.leaky_relu
        return func(*args, **(kwargs or {}))


@pytest.fixture
def activations() -> Iterator[CountActivations]:
    with CountActivations() as counted:
        yield counted
