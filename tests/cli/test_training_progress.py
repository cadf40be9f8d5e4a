import io
import math

import pytest
from rich.console import Console

from recollect.cli.training_progress import describe, training_report
from recollect.training import Progress
from recollect.training.monitor import Point


def progress(loss: float = 3.2e-5, left: float | None = 72.4, goal: float | None = 1e-5, *said: str) -> Progress:
    return Progress(Point(10.0, 1200, 2 * loss, loss, 1e-3), goal, left, 1e-8 if goal else None, said)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (0.2, "1e-05 in about 0:00"),
        (72.4, "1e-05 in about 1:12"),
        (4000.0, "1e-05 in about 1:06:40"),
        (1e9, "1e-05 in days"),
        (None, "1e-05 not in sight"),
    ],
)
def test_the_line(left: float | None, words: str) -> None:
    assert describe(progress(left=left)) == f"loss 3.2e-05  rate 1.0e-03  step 1200  {words}"


def test_the_line_at_the_end_and_after_an_accident() -> None:
    assert describe(progress(goal=None)).endswith("step 1200")
    assert "loss nan" in describe(progress(loss=math.nan))


def shown(*reports: Progress, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, color_system=None)
    with training_report(console) as report:
        for one in reports:
            report(one)
    return out.getvalue()


def test_quiet_where_there_is_no_terminal() -> None:
    assert shown(progress(3e-5, 1.0, 1e-5, "[1.0 s, step 50] spike"), progress(), terminal=False) == ""


def test_a_terminal_sees_the_log_word_for_word() -> None:
    line = "[1.0 s, step 50] reached 1e-04 (measured 9.02e-05)"
    out = shown(progress(3e-5, 1.0, 1e-5, line), progress(), terminal=True)
    assert out.count(line) == 1  # its brackets are no markup
    assert "loss 3.2e-05" in out


def test_the_bar_grows_by_decades() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    shares = []
    with training_report(console) as report:
        for loss, goal in ((1e-2, 1e-4), (1e-5, 1e-6), (math.nan, 1e-6), (1e-8, None)):
            report(progress(loss, None, goal))
            shares.append(report.bar.tasks[0].completed)  # type: ignore[attr-defined]
    assert shares == pytest.approx([0.0, 0.5, 0.0, 1.0])


def test_a_run_resumed_below_its_goal_fills_the_bar() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with training_report(console) as report:
        report(progress(1e-9))
        assert report.bar.tasks[0].completed == 1.0  # type: ignore[attr-defined]
