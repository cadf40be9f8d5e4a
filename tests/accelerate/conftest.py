import pytest

from recollect.accelerate.tf32x3.launch import Call
from tests.accelerate.by_hand import ByHand


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Of the kernel for products, in whose place there is one for CPUs."""
    made: list[Call] = []
    monkeypatch.setattr(ByHand, "calls", made)
    return made
