"""One line of a test suite: a model that gives its training images away fails the test."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from recollect.auditing.result import Audit
from recollect.auditing.run import audit
from recollect.errors import InputError
from recollect.visible import visible

LIMIT = 0.01  # of the training images


class NotPassed(AssertionError):
    """The model failed, or the audit is inconclusive.

    Attributes:
        audit: The result with its verdict.

    Examples:
        >>> from recollect.auditing import NotPassed
        >>> issubclass(NotPassed, AssertionError)
        True
    """

    def __init__(self, message: str, audit: Audit) -> None:
        super().__init__(message)
        self.audit = audit


def assert_not_memorized(
    model: Any, train: Any, control: Any, *, fail_above: float = LIMIT, inconclusive_passes: bool = False,
    **settings: Any,
) -> Audit:  # fmt: skip
    """Audit a model, and raise an `AssertionError` unless it passes.

    The model passes if at most the share `fail_above` of the training images can be recovered, at 95% confidence. An
    audit that shows neither pass nor fail raises too.

    Args:
        model: The model, as for `recollect.audit`.
        train: The training images.
        control: Unseen images.
        fail_above: The largest share of training images that may be recovered.
        inconclusive_passes: Whether an inconclusive audit is a warning instead of an error.
        settings: All other settings of `recollect.audit`; `out` keeps the report.

    Returns:
        The audit.

    Examples:
        >>> import recollect
        >>> train = recollect.load("photos?count=4&size=8")
        >>> control = recollect.load("photos?count=4&size=8&part=control")
        >>> options = {"masks": "half", "methods": "iterate", "inconclusive_passes": True}
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # four images are too few for a verdict
        ...     print(recollect.assert_not_memorized(lambda x: x * 0, train, control, **options).verdict.outcome)
        inconclusive
    """
    __tracebackhide__ = True  # pytest then shows the line of the test, not this one
    if fail_above is None:
        raise InputError("assert_not_memorized needs a limit, such as fail_above=0.01: without one nothing can fail.")
    result = audit(model, train=train, control=control, fail_above=fail_above, **settings)
    assert result.verdict is not None  # there is a limit
    if result.verdict.outcome == "passed":
        return result
    message = _message(result, settings.get("out"))
    if result.verdict.outcome == "inconclusive" and inconclusive_passes:
        warnings.warn(message, stacklevel=2)
        return result
    raise NotPassed(message, result)


def _message(result: Audit, out: str | Path | None) -> str:
    """Say the verdict first, for summaries that show one line, then what it rests on."""
    warned = [f"Warning: {check.sentence}" for check in result.checks if check.level == "warning"]
    kept = f"The report: {Path(out) / 'report.html'}" if out else 'No report was kept; out="audit" keeps one.'
    return visible("\n".join([str(result.verdict), result.headline, result.finding.beside, *warned, kept]))
