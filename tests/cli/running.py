"""The command line as its user runs it, in this process or in one of its own; and small things to give it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from recollect.cli.app import app
from tests.auditing.making import pictures

FACTORY = '''
import os, time
import numpy as np
import torch

class Slow(torch.nn.Module):
    """A memorizer that takes its time, so that it can be stopped in the middle."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stored", torch.from_numpy(np.load("train.npy")).flatten(1))
        self.nap = float(os.environ.get("NAP", "0"))

    def forward(self, x):
        time.sleep(self.nap)
        near = torch.cdist(x.flatten(1), self.stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        return (torch.softmax(-60 * near, 1) @ self.stored).view_as(x)

def raises():
    raise RuntimeError("the disk with the weights is not mounted")

def broken():
    return torch.nn.Linear(5, 5)
'''

AUDIT = ["audit", "making_a_model:Slow", "--train", "train.npy", "--control", "control.npy"]
QUICK = [*AUDIT, "--masks", "block,half", "--gamma", "0.5", "--start", "half_kept"]


def fill(folder: Path) -> Path:
    """A folder with training and control images and a model that holds the first."""
    np.save(folder / "train.npy", pictures(6, 1).numpy())
    np.save(folder / "control.npy", pictures(5, 2).numpy())
    (folder / "making_a_model.py").write_text(FACTORY)
    return folder


def here(*arguments: str) -> Result:
    """In this process, in the working folder."""
    return CliRunner().invoke(app, list(arguments))


def mistake(*arguments: str) -> str:
    """The one sentence that a mistake ends in."""
    result = here(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert isinstance(result.exception, SystemExit), result.exception
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("recollect: ")
    return lines[0]


def start(folder: Path, *arguments: str, nap: float = 0.0) -> "subprocess.Popen[str]":
    """In a process of its own."""
    environment = {**os.environ, "NAP": str(nap), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        [sys.executable, "-m", "recollect", *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )  # fmt: skip


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
