"""Last, by its name: Ray counts a lost machine for some seconds more, and other tests would wait for that."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.distributed import WorkerPool
from recollect.distributed.jobs import Budget, Task
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from tests.distributed.making import nap_elsewhere, one_pid
from tests.paper.making import cell_lines, make_experiment, make_workspace


def test_a_machine_that_is_lost_costs_time_and_no_task(
    pool: WorkerPool, cluster: Any, second: Any, tmp_path: Path
) -> None:
    kept: list[int] = []

    def job(_budget: Budget, /) -> Iterator[Task]:
        for number in range(8):
            inputs = (number, tmp_path, second.node_id)
            yield Task(f"nap {number}", nap_elsewhere, inputs, lambda number: str(kept.append(number)))

    def log(line: str) -> None:
        lines.append(line)
        if len(kept) == 3 and second in cluster.list_all_nodes():
            while not (tmp_path / second.node_id).exists():
                time.sleep(0.1)
            cluster.remove_node(second, allow_graceful=False)

    lines: list[str] = []
    assert pool([job], Budget(), log)
    assert sorted(kept) == list(range(8))
    assert sum("lost with its worker" in line for line in lines) == 1


@pytest.mark.slow
def test_the_papers_cells_outlive_a_worker_and_a_machine(
    pool: WorkerPool, cluster: Any, second: Any, tmp_path: Path
) -> None:
    lines: list[str] = []

    def log(line: str) -> None:
        lines.append(line)
        cells = sum("accurate" in line for line in lines) if "accurate" in line else 0  # a loss is lines in a line too
        if cells == 3:
            pids = [os.getpid()]
            assert pool([one_pid(pids)], Budget(), lambda _: None)
            os.kill(pids[-1], signal.SIGKILL)
        if cells == 9:
            cluster.remove_node(second, allow_graceful=False)

    masks = ("block", "half", "scatter", "dust")
    experiment, workspace = make_experiment(masks), make_workspace(tmp_path)
    assert run([experiment], SMALL, workspace, runner=pool, log=log, masks_together=0)  # a task for every cell
    assert len(cell_lines(tmp_path)) == 24
    names = [line.split(":")[0] for line in lines if "accurate" in line]
    assert len(names) == len(set(names)) == 24
    assert sum("trained:" in line for line in lines) == 1
