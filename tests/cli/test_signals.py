import os
import signal
import sys
import time
from types import FrameType
from typing import Any

import pytest

from recollect.cli import signals
from recollect.errors import Interrupted


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_is_raised_and_the_former_handler_returns(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # jobs in the background begin with SIGINT ignored
    try:
        with signals.raising(), pytest.raises(Interrupted):
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_job_that_ignores_signals_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals.raising():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def exits_once(number: int, frame: FrameType | None) -> None:
    """A handler as Ray sets it, put aside again before the signal comes a second time."""
    signal.signal(number, handlers.pop())
    sys.exit(number)


handlers: list[Any] = []


@pytest.mark.parametrize("handler", [None, exits_once])
def test_a_signal_that_comes_where_python_ignores_exceptions_is_not_lost(handler: Any) -> None:
    class Finalized:
        def __del__(self) -> None:
            if handler:
                handlers.append(signal.signal(signal.SIGTERM, handler))
            signal.raise_signal(signal.SIGTERM)

    def wait() -> None:
        Finalized()  # Python ignores what this raises
        while True:
            time.sleep(1)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with signals.raising(), pytest.raises(Interrupted) as interrupted:
            wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert interrupted.value.number == signal.SIGTERM
