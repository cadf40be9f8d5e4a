import os
import signal
import threading

import pytest

from recollect.interruption import signals_held


def test_a_signal_waits_until_it_is_released() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with it ignored
    try:
        with signals_held() as signals:
            signals.release()
            os.kill(os.getpid(), signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signals.release()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with signals_held():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):  # whoever asks twice does not want to wait
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_signals_without_a_handler_of_python_and_other_threads_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_held():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    held: list[object] = []

    def hold() -> None:
        with signals_held() as signals:
            held.append(signals.handlers)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert held == [{}]
