"""What every method is: hyperparameters as fields, what it says of itself, and the one call that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, Self

from torch import Tensor

from recollect.degradation import Degradation, Erasure
from recollect.engine import Active, Autoencoder, Remembered, Runtime, prepare, run
from recollect.errors import InputError
from recollect.recovery import Progress, Recovery, Trace


class Method:
    """Estimate images from their damaged form: `method(f, y)`, or `method(f, y, truth)` where it knows the truth.

    A method is a frozen dataclass whose fields are its hyperparameters. The class variables say everything that the
    command line's help, audits, tables, figures and the report need to know of it. A subclass implements `begin` and
    `step`; the engine streams images through them.

    Attributes:
        name: The method's name in audits and on the command line.
        summary: One line: what it does and what it knows.
        knows_truth: Whether it is handed the true degradation.
        sees_model: Whether it calls the audited model.

    Examples:
        >>> from recollect.methods import METHODS
        >>> METHODS["iterate"].knows_truth
        False
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one line: what it does and what it knows
    label: ClassVar[str] = ""  # in the legend of a figure; the name if empty
    knows_truth: ClassVar[bool] = False  # it is handed the true degradation
    sees_model: ClassVar[bool] = True  # False: a generic restoration that never calls the audited model
    in_rounds: ClassVar[bool] = False  # its estimate can be watched round by round
    by_default: ClassVar[bool] = False  # an audit runs it unless asked otherwise
    companion: ClassVar[str] = ""  # the baseline that an audit runs beside it
    only_erasures: ClassVar[bool] = False  # it undoes erased pixels and no other damage
    only_images: ClassVar[bool] = False  # it takes images and neither signals nor rows
    only_diffusion: ClassVar[bool] = False  # it needs a diffusion model
    needs_black_fill: ClassVar[bool] = False  # it works only where erased pixels are zero
    stops_at_limit: ClassVar[bool] = False  # reaching the limit of steps is its normal end
    headline_rank: ClassVar[int] = 0  # of equally strong attacks, the headline names the one with the highest
    headline_subject: ClassVar[str] = ""  # how the headline calls a method that is no plain attack
    recorded_as: ClassVar[str] = ""  # the class that records name, where this one only has other defaults
    colour: ClassVar[str | None] = None  # of recollect.palette; None takes one that is free
    order: ClassVar[int] = 100  # position in help and legends
    version: ClassVar[int] = 1  # one more whenever it computes something else with the same fields

    @property
    def kind(self) -> str:
        """The name of the class in records: with the fields, all that decides what the method computes."""
        return self.recorded_as or type(self).__name__

    @classmethod
    def takes(cls, setting: str) -> bool:
        """Return whether a setting of an audit is a field of this method."""
        return setting in {field.name for field in fields(cls)}  # type: ignore[arg-type]  # every method is a dataclass

    @staticmethod
    def most_passes(limit: int, steps: int) -> int:
        """Return the most passes of one image through the network, with a limit of rounds and the steps of a round."""
        return limit * steps

    def check_shape(self, channels: int, height: int, width: int) -> None:
        """Refuse images that the method cannot restore; by default it takes any."""

    def check_kind(self, shape: Sequence[int]) -> None:
        """Refuse signals and rows, if the method takes images alone, by the shape of one of them."""
        if self.only_images and len(shape) != 3:
            size = "x".join(map(str, shape))
            raise InputError(f"{self.name} restores images, C x H x W, and these have the shape {size}; leave it out.")

    @classmethod
    def for_audit(cls, **settings: Any) -> Self:
        """Build the method from an audit's settings (gamma, start, paste, seed, prior); it takes those that it has."""
        return cls(**{name: value for name, value in settings.items() if cls.takes(name)})

    def __call__(
        self,
        f: Autoencoder | None,
        y: Tensor,
        truth: Degradation | None = None,
        *,
        chunk: int | None = None,
        trace: Trace | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        """Recover the images behind y: `method(f, y)`. Only methods that know the truth read it.

        Args:
            f: The autoencoder: any function from a batch to a batch of the same shape.
            y: The damaged images.
            truth: The true degradation, for methods that know it.
            chunk: The largest number of images at a time. Defaults to what memory allows.
            trace: Called after every round with a snapshot of the images that have not stopped.
            progress: Called with the number of images finished and the number in all.

        Returns:
            The estimate of each image, the mask estimate, and why each image stopped.
        """
        if isinstance(y, Tensor):
            self.check_kind(y.shape[1:])
        with self.prepared(f, y, chunk) as runtime:  # which checks y
            known = self._check_truth(truth).expand(y) if self.knows_truth else None
            recovery = self.recover(runtime, y, known, trace, progress)
            runtime.remembered = Remembered(self, y, recovery)
            return recovery

    @contextmanager
    def prepared(self, f: Autoencoder | None, y: Tensor, chunk: int | None) -> Iterator[Runtime]:
        """Prepare the network that this method calls: by default the audited model."""
        with prepare(f, y, chunk) as runtime:  # type: ignore[arg-type]  # None is refused there in a sentence
            yield runtime

    def recover(
        self, f: Runtime, y: Tensor, truth: Degradation | None, trace: Trace | None, progress: Progress | None
    ) -> Recovery:
        """Stream all images through `begin` and `step`."""
        return run(len(y), f, partial(self.begin, f, y, truth), partial(self.step, f), trace, progress)

    def begin(self, f: Runtime, y: Tensor, truth: Degradation | None, rows: slice) -> Active:
        """Make the state of these rows of y before the first step, on the device of f."""
        return Active.begin(y, None if truth is None else truth[rows], rows, f.device)

    def step(self, f: Runtime, batch: Any) -> Any:
        """Move a batch on by one round, and say which of its images have stopped."""
        raise NotImplementedError

    def _check_truth(self, truth: Degradation | None) -> Degradation:
        if not isinstance(truth, Degradation):
            raise InputError(
                f"{self.name} needs the true degradation, such as an Erasure, not a {type(truth).__name__}."
            )
        if self.only_erasures and not isinstance(truth, Erasure):
            raise InputError(
                f"{self.name} restores erased pixels: the truth is an Erasure, not a {type(truth).__name__}."
            )
        return truth
