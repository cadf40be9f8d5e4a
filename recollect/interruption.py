"""Hold signals back while a step is taken, so that what is saved after them is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HeldSignals:
    """Notes a first signal; a second one is handled at once, as if none were held back."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}  # those that signals had before
        self._number: int | None = None

    def release(self) -> None:
        """Handle a signal that was held back, now."""
        if self._number is not None:
            self.handlers[self._number](self._number, None)

    def note(self, number: int, frame: FrameType | None) -> None:
        if self._number is not None:
            self.handlers[number](number, frame)
        self._number = number


@contextmanager
def signals_held() -> Iterator[HeldSignals]:
    """Hold back Ctrl-C, and SIGTERM where Python handles it, until `release` is called."""
    held = HeldSignals()
    if threading.current_thread() is threading.main_thread():  # no other thread gets signals
        before = {number: signal.getsignal(number) for number in SIGNALS}
        held.handlers = {number: handler for number, handler in before.items() if callable(handler)}
    for number in held.handlers:
        signal.signal(number, held.note)
    try:
        yield held
    finally:
        for number, handler in held.handlers.items():
            signal.signal(number, handler)
