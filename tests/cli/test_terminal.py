"""The command in a pseudo-terminal, as a person sees it."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from pathlib import Path

import pytest

from tests.cli.running import QUICK, fill
from tests.warm import RECOLLECT, WarmProcess

AS_AT_HOME = """
import os
for name in ("COLUMNS", "NO_COLOR", "CI"):
    os.environ.pop(name, None)
os.environ["TERM"] = "xterm-256color"
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A pseudo-terminal that collects what is written to it."""

    def __init__(self, columns: int) -> None:
        self.master, self.slave = pty.openpty()
        self.path = os.ttyname(self.slave)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while part := os.read(self.master, 4096):
                self._parts.append(part)
        except OSError:
            pass  # the other end is closed

    def close(self) -> str:
        os.close(self.slave)
        self._reader.join()
        os.close(self.master)
        return b"".join(self._parts).decode()


def run_in_terminal(folder: Path, columns: int, *arguments: str) -> tuple[int, str, str]:
    """Run the command in terminals of this width: exit code, stdout, stderr."""
    out, err = Terminal(columns), Terminal(columns)
    streams = (out.path, out.path, err.path)
    ended = WarmProcess(f"{AS_AT_HOME}{RECOLLECT}", *arguments, folder=folder, streams=streams).end()
    return ended.code, out.close(), err.close()


@pytest.mark.parametrize("columns", [80, 120])
def test_the_result_fits_one_screen_in_whole_words_with_the_verdict_last(tmp_path: Path, columns: int) -> None:
    code, shown, progress = run_in_terminal(fill(tmp_path), columns, *QUICK, "--fail-above", "1%")
    assert code == 3
    lines = [line.rstrip() for line in ESCAPES.sub("", shown).splitlines()]
    assert len(lines) <= 25
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert (
        "Attacks recover 6 of 6 training images from this model (95% interval 61-100%). Of 5 images it never saw: 0."
        in text
    )
    assert text.endswith(
        "Model failed: 6 of 6 training images (100.0%) are recovered (MSE below 5e-04), above the limit of 1.00%."
    )
    assert any("training images" in line and "unseen images" in line for line in lines)
    assert "\x1b[1;31mModel failed:" in shown
    seen = ESCAPES.sub("", progress)
    assert "\r4 attacks and 1 reference under 2 masks, on 6 training and 5 unseen images: up" in seen
    assert "left" in seen
    assert "%" in seen
