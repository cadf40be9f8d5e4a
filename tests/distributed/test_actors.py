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

from recollect.distributed import Crew
from recollect.distributed.actors import TRIES
from recollect.distributed.jobs import Budget, Folder, Shared, Task
from tests.distributed.making import add_a_file, at_work, end_myself, nap, naps, one, refuse, short_of_memory, who
from tests.paper.making import cell_files, run_lines


def done(crew: Crew, *jobs: Any, budget: Budget | None = None) -> tuple[bool, list[str]]:
    told: list[str] = []
    return crew(jobs, budget or Budget(), told.append), told


def processes(crew: Crew) -> set[int]:
    """Those of all workers, when they are there."""
    done(crew, one(refuse))  # hires them
    crew.ray.get([worker.ready.options(max_task_retries=-1).remote() for worker in crew._workers])
    return {crew.ray.get(worker.do.remote(os.getpid, []))[0] for worker in crew._workers}


def test_a_worker_that_is_killed_costs_time_and_no_task(crew: Crew, tmp_path: Path) -> None:
    kept: list[int] = []
    killed: list[int] = []

    def tell(line: str) -> None:
        told.append(line)
        if not killed and (working := at_work(tmp_path)):
            os.kill(working[0], signal.SIGKILL)
            killed.append(working[0])

    told: list[str] = []
    assert crew([naps(tmp_path, 8, 0.4, kept)], Budget(), tell)
    assert killed
    assert sorted(kept) == list(range(8))
    assert sum("lost with its worker, to be done again" in line for line in told) == 1
    assert sum(line.startswith("kept") for line in told) == 8


@pytest.mark.parametrize("noticed", [True, False])
def test_workers_that_are_lost_while_idle_cost_no_task_a_try(crew: Crew, tmp_path: Path, noticed: bool) -> None:
    kept: list[int] = []
    pids = processes(crew)
    assert len(pids) == 2
    crew.ask_again()
    crew.ray.get(list(crew._coming))  # they have said that they are there
    while noticed and crew._coming:
        crew.wait([])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    well, told = done(crew, naps(tmp_path, 2, 0.0, kept))
    assert well
    assert sorted(kept) == [0, 1]
    assert not any("lost" in line for line in told)
    assert not pids & processes(crew)


def test_after_a_loss_those_who_are_idle_are_asked_first(crew: Crew, tmp_path: Path) -> None:
    pids = processes(crew)

    def lose_all() -> str:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return "lost"

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task("nap", nap, (0, tmp_path, 0.0), lambda _: lose_all(), first=True)  # then both are idle
        yield Task("nap", nap, (1, tmp_path, 0.0), str)

    well, told = done(crew, job)
    assert well
    assert sum("lost with its worker" in line for line in told) <= 1


def test_what_fails_is_named_and_the_rest_is_done(crew: Crew, tmp_path: Path) -> None:
    kept: list[int] = []
    jobs = one(refuse, first=True), one(short_of_memory, tmp_path / "once"), naps(tmp_path, 3, 0.0, kept)
    well, told = done(crew, *jobs)
    assert not well
    assert "refuse: failed: this cannot be computed" in told
    assert "enough memory" in told
    assert sum(line.startswith("short_of_memory: lost") for line in told) == 1
    assert sorted(kept) == [0, 1, 2]


@pytest.mark.slow
def test_a_task_that_ends_its_workers_is_given_up_and_the_rest_is_done(crew: Crew, tmp_path: Path) -> None:
    kept: list[int] = []
    well, told = done(crew, one(end_myself), naps(tmp_path, 3, 0.0, kept))
    assert not well
    assert sum(line.startswith("end_myself: lost with its worker") for line in told) == TRIES - 1
    assert sum(line.startswith(f"end_myself: failed: lost {TRIES} times") for line in told) == 1
    assert sorted(kept) == [0, 1, 2]


def test_shared_inputs_are_made_once_and_held_by_the_workers(crew: Crew) -> None:
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

    assert done(crew, job)[0]
    assert made == [1]
    assert {len(identities) for identities in found.values()} == {1}
    assert os.getpid() not in found


def test_the_files_of_a_folder_go_and_come_back(crew: Crew, tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    well, told = done(crew, one(add_a_file, Folder(tmp_path)))
    assert well
    there, *before = eval(told[0])
    assert before == ["old"]
    assert there != str(tmp_path)
    assert (tmp_path / "deep" / "new").read_bytes() == b"new"
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_job_gives_its_next_tasks_when_the_first_is_kept(crew: Crew, tmp_path: Path) -> None:
    order: list[str] = []

    def job(_budget: Budget, /) -> Iterator[Task]:
        yield Task("training", time.sleep, (0.3,), lambda _: str(order.append("trained")), first=True)
        assert order[0] == "trained"
        for _ in range(2):
            yield Task("cell", time.sleep, (0,), lambda _: str(order.append("cell")))

    kept: list[int] = []
    assert done(crew, job, naps(tmp_path, 3, 0.0, kept))[0]
    assert order == ["trained", "cell", "cell"]
    assert sorted(kept) == [0, 1, 2]


def test_time_that_is_over_ends_after_the_tasks_in_work(crew: Crew, tmp_path: Path) -> None:
    kept: list[int] = []
    done(crew, naps(tmp_path, 2, 0.0, []))  # workers are there
    assert not done(crew, naps(tmp_path, 100, 0.2, kept), budget=Budget(0.7))[0]
    assert 1 <= len(kept) < 50
    assert not at_work(tmp_path)
    assert not done(crew, naps(tmp_path, 1, 0.0, kept), budget=Budget(0.0))[0]


PROGRAM = """
    import sys
    from pathlib import Path
    from recollect.distributed import crew_on
    from recollect.paper.run import run
    from recollect.paper.scales import SMALL
    from tests.paper.making import make_experiment, make_workspace
    with crew_on("ray", "cpu") as crew:
        experiment, workspace = make_experiment(("block", "half", "scatter", "dust")), make_workspace(Path(sys.argv[1]))
        run([experiment], SMALL, workspace, runner=crew, log=lambda line: print(line, flush=True))
"""


def test_a_driver_that_is_killed_and_started_again_goes_on_from_the_records(crew: Crew, tmp_path: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    running = subprocess.Popen(program, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if "accurate" in line and len(cell_files(tmp_path)) >= 3:
            break
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    before = cell_files(tmp_path)
    assert 3 <= len(before) < 24
    told = run_lines(tmp_path, "block", "half", "scatter", "dust", runner=crew)
    assert not any("trained:" in line for line in told)  # the weights had come back
    assert len(told) - 1 == 24 - len(before)
    assert before.items() <= cell_files(tmp_path).items()
