import io

from rich.console import Console

from recollect.cli.audit_progress import audit_progress


def shown(*, terminal: bool, quiet: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, color_system=None, get_time=lambda: 0.0)
    with audit_progress(console, quiet=quiet) as progress:
        progress("train / half / blind", 2.5, 10)
    return out.getvalue()


def test_a_terminal_sees_what_is_done_and_how_far() -> None:
    text = shown(terminal=True)
    assert "train / half / blind" in text
    assert "2/10" in text


def test_nothing_is_shown_without_a_terminal_or_when_asked_to_be_quiet() -> None:
    assert shown(terminal=False) == ""
    assert shown(terminal=True, quiet=True) == ""
