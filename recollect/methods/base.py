"""What every method is: hyperparameters as fields, and what it says of itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self


class Method:
    """Estimate images from their damaged form: `method(f, y)`, or `method(f, y, truth)` where it knows the truth.

    A method is a frozen dataclass whose fields are its hyperparameters. The class variables say everything that the
    command line's help, audits, tables, figures and the report need to know of it.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one line: what it does and what it is told
    label: ClassVar[str] = ""  # in the legend of a figure; the name if empty
    knows_truth: ClassVar[bool] = False  # it is handed the true degradation
    sees_model: ClassVar[bool] = True  # False: a generic restoration that never calls the audited model
    in_rounds: ClassVar[bool] = False  # its estimate can be watched round by round
    by_default: ClassVar[bool] = False  # an audit runs it unless asked otherwise
    companion: ClassVar[str] = ""  # the baseline that an audit runs beside it
    only_erasures: ClassVar[bool] = False  # it undoes erased pixels and no other damage
    only_black: ClassVar[bool] = False  # it makes sense only where erased pixels are zero
    colour: ClassVar[str | None] = None  # of recollect.palette; None takes one that is free
    order: ClassVar[int] = 100  # place in help and legends

    @classmethod
    def for_audit(cls, **settings: Any) -> Self:
        """Build the method from an audit's settings (gamma, start, paste, seed); it takes those that it has."""
        own = {field.name for field in fields(cls)}  # type: ignore[arg-type]  # every method is a dataclass
        return cls(**{name: value for name, value in settings.items() if name in own})
