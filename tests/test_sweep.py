import time
from collections.abc import Iterator

from recollect.sweep import Budget, in_this_process


def job(name: str, pieces: int, seconds: float = 0.0, done: list[str] | None = None):  # type: ignore[no-untyped-def]
    def work(_budget: Budget, /) -> Iterator[str]:
        for piece in range(pieces):
            time.sleep(seconds)
            if done is not None:
                done.append(f"{name}{piece}")
            yield f"{name}{piece}"

    return work


def test_jobs_are_done_in_order() -> None:
    told: list[str] = []
    assert in_this_process([job("a", 2), job("b", 0), job("c", 1)], Budget(), told.append)
    assert told == ["a0", "a1", "c0"]


def test_time_that_is_over_stops_between_two_pieces_and_what_was_finished_was_told() -> None:
    told: list[str] = []
    done: list[str] = []
    assert not in_this_process([job("a", 100, 0.02, done), job("b", 1)], Budget(0.05), told.append)
    assert told == done
    assert 1 <= len(told) < 20


def test_no_job_begins_without_time() -> None:
    assert not in_this_process([job("a", 1)], Budget(0.0), lambda _: None)
    assert in_this_process([], Budget(0.0), lambda _: None)
    assert Budget(5.0).left <= 5.0
