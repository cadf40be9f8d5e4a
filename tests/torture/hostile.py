"""Files that act on the machine where another program opens them: seeds, which are mutated further."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.models.making import saved
from tests.models.safety.attacks import ACTS, WRITES, honest_entries, with_line, write


class Acts:
    """Pickles to a call."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


CALLS = (
    Acts(os.mkdir, "mark"),
    Acts(os.system, "touch mark"),
    Acts(eval, "open('mark', 'w')"),
    Acts(open, "mark", "w"),
)


def write_hostile_files(folder: Path) -> None:
    """Write hostile files, each in a folder called like the format under whose name it is opened."""
    for name in ("TorchScript", "state dict .pt", "CIFAR-10 pickle"):
        (folder / name).mkdir(parents=True)
    entries = honest_entries(folder)
    for number, line in enumerate((*WRITES.values(), *ACTS.values())):
        write(with_line(entries, line), folder / "TorchScript" / f"{number}.pt")
    for number, content in enumerate(_pickles()):
        (folder / "CIFAR-10 pickle" / str(number)).write_bytes(content)
        (folder / "state dict .pt" / f"{number}.pt").write_bytes(content)
    for number, call in enumerate(CALLS):
        for name in ("state dict .pt", "TorchScript"):
            (folder / name / f"saved{number}.pt").write_bytes(saved({"weight": torch.ones(2), "more": call}))


def _pickles() -> Iterator[bytes]:
    for call in CALLS:
        for protocol in (0, 2, 4):
            yield pickle.dumps(call, protocol)
            yield pickle.dumps({b"data": call, b"labels": []}, protocol)
