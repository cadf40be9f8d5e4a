import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.distributed import WorkerPool
from recollect.distributed.jobs import Budget, Folder, Shared, Task
from recollect.distributed.worker_pool import TRIES
from tests.distributed.making import (
    add_a_file,
    at_work,
    end_myself,
    end_once,
    nap,
    naps,
    one,
    refuse,
    short_of_memory,
    who,
)
from tests.paper.making import cell_lines, run_lines


def done(pool: WorkerPool, *jobs: Any, budget: Budget | None = None) -> tuple[bool, list[str]]:
    lines: list[str] = []
    return pool(jobs, budget or Budget(), lines.append), lines


def processes(pool: WorkerPool) -> set[int]:
    """Those of all workers, when they are there."""
    done(pool, one(refuse))  # hires them
    pool.ray.get([worker.ready.options(max_task_retries=-1).remote() for worker in pool._workers])
    return {pool.ray.get(worker.run.remote(os.getpid, []))[0] for worker in pool._workers}


def test_a_worker_that_is_killed_costs_time_and_no_task(pool: WorkerPool, tmp_path: Path) -> None:
    kept: list[int] = []
    well, lines = done(pool, naps(tmp_path, 3, 0.0, kept), one(end_once, tmp_path / "once"), naps(tmp_path, 3, 0.0, []))
    assert well
    assert sorted(kept) == [0, 1, 2]
    assert sum(line.startswith("end_once: lost with its worker and will run again") for line in lines) == 1
    assert lines.count("ended once") == 1
    assert sum(line.startswith("kept") for line in lines) == 6


@pytest.mark.parametrize("noticed", [True, False])
def test_workers_that_are_lost_while_idle_cost_no_task_a_try(pool: WorkerPool, tmp_path: Path, noticed: bool) -> None:
    kept: list[int] = []
    pids = processes(pool)
    assert len(pids) == 2
    pool.check_idle()
    pool.ray.get(list(pool._starting))  # they have said that they are there
    while noticed and pool._starting:
        pool.wait([])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    well, lines = done(pool, naps(tmp_path, 2, 0.0, kept))
    assert well
    assert sorted(kept) == [0, 1]
    assert not any("lost" in line for line in lines)
    assert not pids & processes(pool)


def test_after_a_loss_those_who_are_idle_are_asked_first(pool: WorkerPool, tmp_path: Path) -> None:
    pids = processes(pool)

    def lose_all() -> str:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return "lost"

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task("nap", nap, (0, tmp_path, 0.0), lambda _: lose_all(), first=True)  # then both are idle
        yield Task("nap", nap, (1, tmp_path, 0.0), str)

    well, lines = done(pool, job)
    assert well
    assert sum("lost with its worker" in line for line in lines) <= 1


def test_what_fails_is_named_and_the_rest_is_done(pool: WorkerPool, tmp_path: Path) -> None:
    kept: list[int] = []
    jobs = one(refuse, first=True), one(short_of_memory, tmp_path / "once"), naps(tmp_path, 3, 0.0, kept)
    well, lines = done(pool, *jobs)
    assert not well
    assert "refuse: failed: this cannot be computed" in lines
    assert "enough memory" in lines
    assert sum(line.startswith("short_of_memory: lost") for line in lines) == 1
    assert sorted(kept) == [0, 1, 2]


@pytest.mark.slow
def test_a_task_that_ends_its_workers_is_given_up_and_the_rest_is_done(pool: WorkerPool, tmp_path: Path) -> None:
    kept: list[int] = []
    well, lines = done(pool, one(end_myself), naps(tmp_path, 3, 0.0, kept))
    assert not well
    assert sum(line.startswith("end_myself: lost with its worker") for line in lines) == TRIES - 1
    assert sum(line.startswith(f"end_myself: failed: lost {TRIES} times") for line in lines) == 1
    assert sorted(kept) == [0, 1, 2]


def test_shared_inputs_are_made_once_and_held_by_the_workers(pool: WorkerPool) -> None:
    made: list[int] = []
    found: dict[int, set[int]] = defaultdict(set)

    def make() -> bytes:
        made.append(1)
        return bytes(3_000_000)

    def keep(answer: tuple[int, int, int]) -> str:
        pid, identity, size = answer
        found[pid].add(identity)
        assert size == 3_000_000
        return ""

    def job(_budget: Budget, /) -> Iterator[Task]:
        large = Shared(make)
        for _ in range(12):
            yield Task("who", who, (large,), keep)

    assert done(pool, job)[0]
    assert made == [1]
    assert {len(identities) for identities in found.values()} == {1}
    assert os.getpid() not in found


def test_the_files_of_a_folder_are_sent_and_returned(pool: WorkerPool, tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    well, lines = done(pool, one(add_a_file, Folder(tmp_path)))
    assert well
    there, *before = eval(lines[0])
    assert before == ["old"]
    assert there != str(tmp_path)
    assert (tmp_path / "deep" / "new").read_bytes() == b"new"
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_job_gives_its_next_tasks_when_the_first_is_kept(pool: WorkerPool, tmp_path: Path) -> None:
    order: list[str] = []

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task("training", time.sleep, (0.3,), lambda _: str(order.append("trained")), first=True)
        assert order[0] == "trained"
        for _ in range(2):
            yield Task("cell", time.sleep, (0,), lambda _: str(order.append("cell")))

    kept: list[int] = []
    assert done(pool, job, naps(tmp_path, 3, 0.0, kept))[0]
    assert order == ["trained", "cell", "cell"]
    assert sorted(kept) == [0, 1, 2]


def test_time_that_is_over_ends_after_the_tasks_that_have_begun(pool: WorkerPool, tmp_path: Path) -> None:
    kept: list[int] = []
    assert not done(pool, naps(tmp_path, 100, 0.0, kept), budget=Budget(50, lambda: 20.0 * len(kept)))[0]
    assert 3 <= len(kept) <= 3 + len(pool)  # those that had begun when the third was kept
    assert not at_work(tmp_path)
    assert not done(pool, naps(tmp_path, 1, 0.0, kept), budget=Budget(0.0))[0]


PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    from recollect.distributed import open_pool
    from recollect.paper.run import run
    from recollect.paper.scales import SMALL
    from tests.paper.making import make_experiment, make_workspace

    recorded = []
    def log(line):
        recorded.extend(part for part in line.splitlines() if "accurate" in part)
        if len(recorded) >= 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_pool("ray", "cpu") as pool:
        experiment, workspace = make_experiment(("block", "half", "scatter", "dust")), make_workspace(Path(sys.argv[1]))
        run([experiment], SMALL, workspace, runner=pool, log=log)
"""


def test_a_driver_that_is_killed_and_started_again_goes_on_from_the_records(pool: WorkerPool, tmp_path: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    assert subprocess.run(program, capture_output=True, check=False).returncode == -signal.SIGKILL
    before = cell_lines(tmp_path)
    assert 3 <= len(before) < 24
    lines = run_lines(tmp_path, "block", "half", "scatter", "dust", runner=pool)
    assert not any("trained:" in line for line in lines)  # the weights were sent to this process
    assert len(lines) - 1 == 24 - len(before)
    assert before.items() <= cell_lines(tmp_path).items()
