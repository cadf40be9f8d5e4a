"""Runs that are killed and resumed, against one that is not."""

from pathlib import Path
from typing import Any

import pytest

from recollect.record_lines import read_lines
from tests import warm

MOMENTS = (1, 5)  # records that are written before the kill, of batches of three

# Each run is forked from a process that has imported everything and computed nothing.
PROGRAM = """
import os, shutil, signal, sys
from dataclasses import replace
from pathlib import Path
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.paper.store import Store
from tests.paper.making import FIT, make_experiment, make_workspace

class Dying(Store):
    left = None
    def add(self, record):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        super().add(record)
        self.left = None if self.left is None else self.left - 1

def one_run(folder, records):
    child = os.fork()
    if child == 0:
        workspace = make_workspace(folder)
        store = Dying(workspace.store.folder)
        store.left = records
        run([make_experiment(("block", "half", "dust"))], SMALL, replace(workspace, store=store))
        os._exit(0)
    return os.waitpid(child, 0)[1]

folder = Path(sys.argv[1])
assert one_run(folder / "whole", None) == 0
for moment in sys.argv[2:]:
    shutil.copytree(folder / "whole" / "work", folder / moment / "work")  # training was killed in other tests
    trained = Store(folder / "whole" / "results").trainings()
    Store(folder / moment / "results").add_training(FIT, trained[0])
    assert one_run(folder / moment, int(moment)) == signal.SIGKILL
    assert one_run(folder / moment, None) == 0
"""


def records(folder: Path) -> list[Any]:
    """Every line of the results, less dates and durations."""
    (path,) = (folder / "results").rglob("*.*")
    found = [content for content, _ in read_lines(path)]
    for facts in found:
        for name in ("seconds", "history", "why", "log", "checksum"):
            facts.pop(name, None)
        for milestone in facts.get("milestones", ()):
            milestone.pop("seconds")
    return found


@pytest.mark.slow
def test_a_killed_run_equals_one_that_was_not_bit_for_bit(tmp_path: Path) -> None:
    ended = warm.run(PROGRAM, str(tmp_path), *map(str, MOMENTS))
    assert ended.code == 0, ended.err
    whole = records(tmp_path / "whole")
    assert len(whole) == 19
    for moment in MOMENTS:
        assert records(tmp_path / str(moment)) == whole, moment
