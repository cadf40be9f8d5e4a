"""SIGTERM is handled by recollect, and not by Ray, which would leave without a sentence."""

import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import os, signal, sys
import ray
from recollect.cli import signals
from recollect.distributed import open_pool
from recollect.errors import Interrupted

def interrupt(): os.kill(os.getpid(), signal.SIGTERM)

if sys.argv[2] == "connecting":
    ray.init = lambda *given, **named: (signal.signal(signal.SIGTERM, lambda *_: sys.exit(15)), interrupt())
try:
    with signals.raising(), open_pool(sys.argv[1], "cpu"):
        interrupt()
except Interrupted as interrupted:
    print(interrupted.number)
"""


@pytest.mark.parametrize("when", ["connecting", "connected"])
def test_sigterm_interrupts(cluster: Any, when: str) -> None:
    """Ray sets such a handler as soon as it connects, a moment too short to send a signal in."""
    command = [sys.executable, "-c", SCRIPT, cluster.address, when]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "15\n"), ended.stderr
