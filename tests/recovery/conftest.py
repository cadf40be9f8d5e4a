from typing import Any

import pytest

from recollect.recovery import tensor_cores
from recollect.recovery.products import Call, Outcome
from tests.recovery import by_hand


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Of the kernel for products, in whose place there is one for CPUs."""
    made: list[Call] = []

    def kept(call: Call, *others: Any) -> Outcome:
        made.append(call)
        return by_hand.product(call, *others)

    monkeypatch.setattr(tensor_cores, "run_kernel", kept)
    monkeypatch.setattr(tensor_cores, "double", by_hand.double)
    return made
