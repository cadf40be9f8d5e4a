import io

import pytest
from rich.console import Console

from recollect.auditing.progress import no_progress, shown_progress
from tests.auditing.making import small_audit


def test_progress_moves_within_a_cell_and_ends_at_the_end() -> None:
    reported: list[tuple[str, float, float]] = []
    small_audit(masks="half", chunk=3, progress=lambda *at: reported.append(at))
    assert {total for _, _, total in reported} == {100}
    assert any(done % 1 for _, done, _ in reported)
    assert [done for _, done, _ in reported] == sorted(done for _, done, _ in reported)
    assert reported[-1][1] == pytest.approx(100)
    assert "training / half / blind" in {doing for doing, _, _ in reported}


def test_a_search_for_settings_is_reported_first() -> None:
    reported: list[str] = []
    small_audit(masks="half", methods="blind", gamma=None, progress=lambda doing, _done, _total: reported.append(doing))
    assert reported[:3] == ["choosing settings"] * 3


def test_nothing_is_reported_where_nobody_listens() -> None:
    no_progress("anything", 1, 2)


def shown(*, terminal: bool, quiet: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None, get_time=lambda: 0.0)
    with shown_progress(console, quiet=quiet) as progress:
        for done in (0.0, 4.0, 25.0, 25.1, 100.0):
            progress("training / half / blind", done, 100.0)
    return out.getvalue()


def test_a_terminal_sees_one_bar_with_the_time_left() -> None:
    text = shown(terminal=True)
    assert "training / half / blind" in text
    assert "100%" in text
    assert "left" in text


def test_without_a_terminal_there_is_a_line_for_each_tenth() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines == [f"{done}% done: training / half / blind" for done in (0, 20, 100)]


def test_nothing_is_shown_when_asked_to_be_quiet() -> None:
    assert shown(terminal=True, quiet=True) == shown(terminal=False, quiet=True) == ""


def test_python_shows_progress_where_it_is_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    small_audit(train=3, control=None, masks="half", methods="iterate", gamma=None, start=None, progress=True)
    assert "100% done: checking numerical stability" in capsys.readouterr().err
    small_audit(train=3, control=None, masks="half", methods="iterate", gamma=None, start=None)
    assert capsys.readouterr().err == ""
