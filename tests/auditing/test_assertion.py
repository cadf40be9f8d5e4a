"""The one line of a test suite has the gate's three outcomes, and only one of them passes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import recollect
from recollect import InputError, Refined, assert_not_memorized
from recollect.auditing import NotPassed, OutOfTime
from tests.auditing.making import images
from tests.planted import Memorizer

pytest_plugins = ["pytester"]

STORED, UNSEEN = images(16, 1), images(12, 2)
REFINED: dict[str, Any] = {"masks": "half", "methods": [Refined(0.5, limit=5)]}
QUICK = REFINED | {"fail_above": 0.2}


def forgets(x: Tensor) -> Tensor:
    """Return whole images as they are, and grey for damaged ones."""
    damaged = (x == 0).flatten(1).any(1).view(-1, 1, 1, 1)
    return torch.where(damaged, 0.5, x)


def test_a_model_that_forgets_passes_and_gives_its_audit() -> None:
    result = assert_not_memorized(forgets, STORED, UNSEEN, **QUICK)
    assert result.verdict is not None
    assert result.verdict.outcome == "passed"


def test_a_model_that_memorized_fails_with_the_verdict_first_and_the_report_last(tmp_path: Path) -> None:
    with pytest.raises(NotPassed) as caught:
        assert_not_memorized(Memorizer(STORED.pixels), STORED, UNSEEN, **QUICK, out=tmp_path, pictures=False)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "Model failed: 16 of 16 training images (100.0%) are recovered (MSE below 5e-04), above the limit of 20.00%."
    )
    assert lines[1].startswith("Attacks recover 16 of 16 training images from this model")
    assert lines[-1] == f"The report: {tmp_path / 'report.html'}"
    assert (tmp_path / "report.html").exists()
    assert caught.value.audit.verdict.outcome == "failed"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("model", "train", "control", "settings", "words"),
    [
        (forgets, STORED, UNSEEN, REFINED, "At least 299 training images are needed."),  # for the default limit of 1%
        (forgets, STORED, UNSEEN, QUICK | {"methods": "iterate"}, "The attack refined, usually the strongest, was not"),
        (forgets, STORED, None, QUICK, "No unseen images were given"),
        (Memorizer(STORED.pixels), UNSEEN, STORED, QUICK, "The model does not fit its training images"),
        (lambda x: x, STORED, UNSEEN, QUICK, "The model copies its input"),
    ],
    ids=["few images", "weak attack", "no unseen images", "sets exchanged", "identity"],
)
def test_an_audit_that_shows_nothing_does_not_pass(
    model: Any, train: Any, control: Any, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(NotPassed, match=r"^Inconclusive: .*") as caught:
        assert_not_memorized(model, train, control, **settings)
    assert words in str(caught.value)
    assert str(caught.value).endswith('No report was kept; out="audit" keeps one.')


def test_an_inconclusive_audit_passes_with_a_warning_if_asked_and_a_leak_never_does() -> None:
    few = QUICK | {"inconclusive_passes": True}
    with pytest.warns(UserWarning, match="At least 14 training images are needed"):
        result = assert_not_memorized(forgets, STORED[:8], UNSEEN, **few)
    assert result.verdict.outcome == "inconclusive"  # type: ignore[union-attr]
    with pytest.raises(NotPassed, match="Model failed"):
        assert_not_memorized(Memorizer(STORED.pixels), STORED, UNSEEN, **few)


def test_results_of_another_model_in_the_folder_are_not_taken_for_its_own(tmp_path: Path) -> None:
    assert_not_memorized(forgets, STORED, UNSEEN, **QUICK, out=tmp_path)
    with pytest.raises(NotPassed, match="Model failed"):
        assert_not_memorized(Memorizer(STORED.pixels), STORED, UNSEEN, **QUICK, out=tmp_path)


def test_what_cannot_fail_is_refused_and_what_does_not_end_is_no_pass() -> None:
    with pytest.raises(InputError, match="needs a limit"):
        assert_not_memorized(forgets, STORED, UNSEEN, fail_above=None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 to below 1"):
        assert_not_memorized(forgets, STORED, UNSEEN, fail_above=1.0)
    with pytest.raises(OutOfTime):
        assert_not_memorized(forgets, STORED, UNSEEN, **QUICK, max_seconds=1e-9)


def test_pytest_shows_the_line_of_the_test_and_the_verdict(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_model="""
        import recollect
        from tests.auditing.test_assertion import QUICK, STORED, UNSEEN, Memorizer, forgets

        def test_passes():
            recollect.assert_not_memorized(forgets, STORED, UNSEEN, **QUICK)

        def test_fails():
            recollect.assert_not_memorized(Memorizer(STORED.pixels), STORED, UNSEEN, **QUICK)

        def test_tells_nothing():
            recollect.assert_not_memorized(forgets, STORED[:8], UNSEEN, **QUICK)
    """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            ">       recollect.assert_not_memorized(Memorizer(STORED.pixels), STORED, UNSEEN, [*][*]QUICK)",
            "E       recollect.auditing.assertion.NotPassed: Model failed: 16 of 16 training images (100.0%) are *",
            "E       recollect.auditing.assertion.NotPassed: Inconclusive: 0 of 8 training images *",
            "FAILED test_model.py::test_fails - recollect.auditing.assertion.NotPassed: Mo*",
        ]
    )
    assert "assertion.py" not in result.stdout.str()


def test_it_is_a_public_name() -> None:
    assert "assert_not_memorized" in recollect.__all__
