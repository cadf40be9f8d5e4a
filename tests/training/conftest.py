"""Small runs without the chart of their loss, which takes longer to draw than they take to train."""

import sys

import pytest


@pytest.fixture(autouse=True)
def without_charts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__ != "tests.training.test_curve":
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # a run without matplotlib draws none
