"""Run the command line as its user does, in this process or in one of its own."""

from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from recollect.cli.app import app
from tests.auditing.making import pictures
from tests.warm import RECOLLECT, Ended, WarmProcess

FACTORY = '''
import os
import sys
import numpy as np
import torch

class Planted(torch.nn.Module):
    """A memorizer; on request it sends its own process a signal once three cells are finished."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stored", torch.from_numpy(np.load("train.npy")).flatten(1))
        self.signal = int(os.environ.pop("SIGNAL_IN_THE_MIDDLE", "0"))

    def forward(self, x):
        if self.signal and len([n for n in cells() if n.endswith(".json")]) == 3:
            number, self.signal = self.signal, 0
            os.kill(os.getpid(), number)
        near = torch.cdist(x.flatten(1), self.stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        return (torch.softmax(-60 * near, 1) @ self.stored).view_as(x)

class Forgetful(torch.nn.Module):
    """Whole images as they are, grey for damaged ones."""

    def forward(self, x):
        return torch.where((x == 0).flatten(1).any(1).view(-1, 1, 1, 1), 0.5, x)

def cells():
    return os.listdir("audit/cells") if os.path.isdir("audit/cells") else []

def raises():
    raise RuntimeError("the disk with the weights is not mounted")

def dataset():
    return [(torch.from_numpy(one), 0) for one in np.load("train.npy")]

def leaves():
    sys.exit(0)

class Leaving(torch.nn.Module):
    def forward(self, x):
        sys.exit(0)

class Narrow(torch.nn.Module):
    def forward(self, x):
        if len(x) > 17:
            raise RuntimeError("at most 17 images")
        return x * 0.5

class LeavingSet(list):
    def __getitem__(self, position):
        sys.exit(0)

left_by_its_items = LeavingSet(range(6))

def broken():
    return torch.nn.Linear(5, 5)
'''

AUDIT = ["audit", "making_a_model:Planted", "--train", "train.npy", "--control", "control.npy"]
QUICK = [*AUDIT, "--masks", "block,half", "--gamma", "0.5", "--start", "half_kept"]
TWO_ATTACKS = [*QUICK, "--methods", "iterate,blind"]  # for tests in which it does not matter what is recovered


def fill(folder: Path) -> Path:
    """A folder with training and control images and a model that holds the first."""
    np.save(folder / "train.npy", pictures(6, 1).numpy())
    np.save(folder / "control.npy", pictures(5, 2).numpy())
    (folder / "making_a_model.py").write_text(FACTORY)
    return folder


def here(*arguments: str, **variables: str) -> Result:
    """Run the command in this process, in the working folder."""
    return CliRunner().invoke(app, list(arguments), env=variables)


def mistake(*arguments: str) -> str:
    """The one sentence that a mistake ends in."""
    result = here(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert isinstance(result.exception, SystemExit), result.exception
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("recollect: ")
    return lines[0]


def start_warm(folder: Path, *arguments: str, **variables: str) -> WarmProcess:
    """Start the command in a process of its own that need not import anything."""
    return WarmProcess(RECOLLECT, *arguments, folder=folder, **variables)


def run(folder: Path, *arguments: str, **variables: str) -> Ended:
    """Run the command in such a process: exit code, stdout, stderr."""
    return start_warm(folder, *arguments, **variables).end()
