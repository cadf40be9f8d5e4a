import io
from dataclasses import replace

import pytest
from rich.console import Console

from recollect.auditing import Audit
from recollect.auditing.checks import Check
from recollect.auditing.printout import as_text, print_audit
from recollect.auditing.thresholds import APPROXIMATELY
from recollect.auditing.verdict import Gate, Judged, decide
from recollect.scoring import Rate
from tests.auditing.making import small_audit

CHECKS = [Check("a", "ok", "Fine."), Check("b", "note", "Look here."), Check("c", "warning", "Mind this. " * 30)]


@pytest.fixture(scope="module")
def planted() -> Audit:
    return small_audit()


def printed(audit: Audit, width: int, *, verbose: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    print_audit(audit, console, verbose=verbose, report="audit/report.html")
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_in_full_every_table_and_every_remark_is_there_and_the_headline_is_last(planted: Audit) -> None:
    text = str(planted)
    assert " ".join(text.split()).endswith(f"{planted.headline} {planted.finding.beside}")
    for line in ("any attack          8 of 8 (68-100%)", "known (reference)", "100 [68, 100]", "+100 [+49, +100]"):
        assert line in text
    assert "AUC 1.000" in text
    assert "note: The simple rule" in text
    assert "ok:" not in text
    assert "\x1b" not in text


def test_in_full_warnings_come_before_notes(planted: Audit) -> None:
    text = as_text(replace(planted, checks=CHECKS))
    assert 0 < text.index("warning: Mind this.") < text.index("note: Look here.")


def test_where_warnings_are_cut_their_whole_text_is_pointed_to(planted: Audit) -> None:
    warning = Check("range", "warning", "The stated range is used although another fits far better. " * 3)
    text = printed(replace(planted, checks=[warning]), 80)
    assert "warning" in text
    assert "The warnings in full: see --verbose or the report." in text
    assert "--verbose" not in printed(replace(planted, checks=[]), 80)


@pytest.mark.parametrize("width", [80, 120])
def test_by_default_it_fits_one_screen_with_the_verdict_last(planted: Audit, width: int) -> None:
    verdict = decide(
        Gate(0.01, APPROXIMATELY), Judged(Rate(0, 40), Rate(0, 40)), ["The model copies its input, and more. " * 3]
    )
    audit = replace(planted, verdict=verdict, checks=[*CHECKS, *[replace(CHECKS[2], name=str(i)) for i in range(9)]])
    text = printed(audit, width)
    lines = text.splitlines()
    assert len(lines) <= 25
    assert max(len(line) for line in as_text(audit).splitlines()) <= 100
    assert " ".join(text.split("\x1b[1;33m")[1].split()).startswith("Inconclusive:")
    assert " ".join(lines[-3:]).replace("\x1b[0m", "").endswith(verdict.reason[-20:])
    assert "8 more warnings and 1 note on these numbers: see --verbose or the report." in text
    assert lines[next(i for i, line in enumerate(lines) if "Inconclusive:" in line) - 1] == ""
    assert "Fine." not in text
    assert "Look here." not in text


@pytest.mark.parametrize(("recovered", "colour"), [(40, "\x1b[1;31mModel failed:"), (0, "\x1b[1;33mInconclusive:")])
def test_the_outcome_has_a_colour(planted: Audit, recovered: int, colour: str) -> None:
    audit = replace(planted, verdict=decide(Gate(0.01), Judged(Rate(recovered, 40), Rate(0, 40))))
    assert colour in printed(audit, 80)


def test_the_tuned_images_and_the_attribution_are_told(planted: Audit) -> None:
    settings = {**planted.facts["settings"], "tuning_images_left_out": ["1", "2"]}
    audit = replace(planted, attribution="The attribution.", facts={**planted.facts, "settings": settings})
    assert "The attribution." in str(audit)
    assert "searched on 2 other training images" in str(audit)
