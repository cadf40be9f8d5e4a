from collections.abc import Callable, Iterator
from pathlib import Path

from recollect.distributed.jobs import Budget, Folder, Job, Shared, Task, in_this_process


def job(name: str, pieces: int, do: Callable[[str], str] = str) -> Job:
    def work(_budget: Budget, /) -> Iterator[Task]:
        for piece in range(pieces):
            yield Task(name, do, (f"{name}{piece}",), str)

    return work


def test_jobs_are_done_in_order() -> None:
    lines: list[str] = []
    assert in_this_process([job("a", 2), job("b", 0), job("c", 1)], Budget(), lines.append)
    assert lines == ["a0", "a1", "c0"]


def test_time_that_is_over_stops_between_two_pieces_and_what_was_finished_was_told() -> None:
    lines: list[str] = []
    done: list[str] = []

    def take_20_seconds(piece: str) -> str:
        done.append(piece)
        return piece

    budget = Budget(50, lambda: 20.0 * len(done))
    assert not in_this_process([job("a", 100, take_20_seconds), job("b", 1)], budget, lines.append)
    assert lines == done == ["a0", "a1", "a2"]
    assert (budget.spent, budget.left) == (60, 0)


def test_no_job_begins_without_time() -> None:
    assert not in_this_process([job("a", 1)], Budget(0.0), lambda _: None)
    assert in_this_process([], Budget(0.0), lambda _: None)


def test_shared_inputs_are_made_once_and_folders_are_given_as_paths(tmp_path: Path) -> None:
    made: list[int] = []
    large = Shared(lambda: made.append(1) or len(made))
    unused = Shared(lambda: made.append(2))

    def work(_budget: Budget, /) -> Iterator[Task]:
        for _ in range(3):
            yield Task("t", lambda number, folder: (number, folder), (large, Folder(tmp_path)), str)

    lines: list[str] = []
    assert in_this_process([work], Budget(), lines.append)
    assert lines == [str((1, tmp_path))] * 3
    assert made == [1]
    assert unused.make is not None


def test_a_job_is_asked_for_its_next_task_after_the_first_is_kept() -> None:
    kept: list[int] = []

    def work(_budget: Budget, /) -> Iterator[Task]:
        yield Task("training", lambda: 7, (), lambda found: str(kept.append(found)), first=True)
        assert kept == [7]

    assert in_this_process([work], Budget(), lambda _: None)
