"""Ctrl-C and SIGTERM: during imports they end the process at once, and else they raise what commands handle.

Only the standard library's own basic modules are imported here, so that no moment is left in which a signal gives a
traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from recollect.errors import INTERRUPTION, Interrupted

Handler = Callable[[int, FrameType | None], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
AGAIN_AFTER = 0.05  # seconds


def exit_at_once() -> None:
    """End the process with a sentence when a signal comes; for times at which there is nothing to save."""
    _install(_exit)


def ignore() -> None:
    """Ignore signals; for the end of a command, when its result is printed."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def raising() -> Iterator[None]:
    """Raise Interrupted when a signal comes."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    hook_before, sys.unraisablehook = sys.unraisablehook, _send_again
    _install(_raise)
    try:
        yield
    finally:
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)


def _install(handler: Handler) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and background jobs ignore signals on purpose
            signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    if _is_importing(frame):  # libraries that are interrupted during an import raise errors of their own
        _exit(number, frame)
    raise Interrupted(number)


def _send_again(unraisable: Any) -> None:
    """Send a signal again that came where Python ignores exceptions: in a finalizer or a callback of the collector."""
    number = _number_of(unraisable.exc_value)
    if number is None:
        sys.__unraisablehook__(unraisable)
        return
    from threading import Timer  # not from here: Python would ignore it once more

    timer = Timer(AGAIN_AFTER, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


def _number_of(error: BaseException | None) -> int | None:
    """Return the signal that an exception stands for: ours, or that of the handler Ray sets while it starts."""
    if isinstance(error, Interrupted):
        return error.number
    if isinstance(error, SystemExit) and error.code in SIGNALS:
        return int(error.code)
    return None


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    cursor = "\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides it
    os.write(2, f"{cursor}\nrecollect: {INTERRUPTION}\n".encode())
    os._exit(128 + number)
