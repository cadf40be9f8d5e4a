"""Audit a small sample during training: cheap enough for every few epochs, in any training loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from recollect.auditing.damaged_sets import DamagedSet, damage, leave_out, load_sets
from recollect.auditing.inputs import find_copies
from recollect.auditing.measure import recover
from recollect.auditing.progress import tell_nothing, tell_on_stderr
from recollect.auditing.request import read_masks
from recollect.auditing.thresholds import APPROXIMATELY, read_threshold
from recollect.auditing.tuning import Setting, papers_setting_for
from recollect.counting import counted
from recollect.degradation import observe
from recollect.devices.precision import device_of
from recollect.distributed.jobs import Log
from recollect.errors import InputError, is_number, is_whole
from recollect.images import Images
from recollect.methods import KnownMask
from recollect.models import at_most, probe_model
from recollect.recovery import Stop
from recollect.scoring import Rate, Score, excess

SEED = 42  # of masks that are drawn
FEWEST = 8  # images; of fewer, more than half have to be recovered before that is evidence


@dataclass(frozen=True)
class SampleAudit:
    """What a sample shows after so many epochs.

    Args:
        epoch: Number of epochs done.
        train: Share of the sampled training images that are recovered.
        control: Share of the unseen images that are recovered.
        begun: Whether this is evidence of memorization.

    Examples:
        >>> from recollect.callbacks import SampleAudit
        >>> from recollect.scoring import Rate
        >>> SampleAudit(10, Rate(9, 32), Rate(0, 32), begun=True).metrics["memorization/control"]
        0.0
    """

    epoch: int
    train: Rate  # of the sampled training images that are recovered
    control: Rate  # of the unseen images
    begun: bool  # whether this is evidence of memorization

    @property
    def metrics(self) -> dict[str, float]:
        """The numbers for a logger."""
        train, control = self.train.value, self.control.value
        return {
            "memorization/train": train, "memorization/control": control, "memorization/excess": train - control,
        }  # fmt: skip

    def __str__(self) -> str:
        return (
            f"After {counted(self.epoch, 'epoch')} {self.train.count} of {counted(self.train.total, 'training image')} "
            f"can be recovered, and {self.control.count} of {counted(self.control.total, 'unseen image')}."
        )


class MemorizationMonitor:
    """Audit a sample every few epochs: call it after each epoch with the model and the number of epochs done.

    The recovery knows which pixels are erased. It takes 40 passes an image, where attacks take thousands.

    Args:
        train: Training images, as for `recollect.audit`. The record of a split names both sets.
        control: Unseen images.
        every: Epochs from one audit to the next.
        images: How many training images and how many unseen images are sampled, evenly spaced over their sets.
        masks: As for `recollect.audit`.
        gamma: As for `recollect.audit`. Defaults to the paper's for its own networks, else 0.5.
        threshold: As for `recollect.audit`.
        begins_at: Memorization has begun when this share of the training images is recovered beyond unseen images.
        chunk: As for `recollect.audit`.
        tell: Called with one sentence when memorization begins; None tells nothing.

    Examples:
        >>> import recollect
        >>> from recollect.callbacks import MemorizationMonitor
        >>> train = recollect.load("photos?count=8&size=8")
        >>> control = recollect.load("photos?count=8&size=8&part=control")
        >>> monitor = MemorizationMonitor(train, control, every=1, images=8)
        >>> print(monitor(lambda x: x * 0, 1))
        After 1 epoch 0 of 8 training images can be recovered, and 0 of 8 unseen images.
    """

    def __init__(
        self, train: Any, control: Any = None, *, every: int = 10, images: int = 32, masks: Any = "block,scatter",
        gamma: float | None = None, threshold: float | str = APPROXIMATELY.name, begins_at: float = 0.1,
        chunk: int | None = None, tell: Log | None = tell_on_stderr,
    ) -> None:  # fmt: skip
        _check_numbers(every, images, begins_at, chunk)
        self.every, self.begins_at, self.threshold = every, begins_at, read_threshold(threshold)
        self.history: list[SampleAudit] = []
        self._method = None if gamma is None else KnownMask(gamma)
        self._samples = _damaged_samples(train, control, images, masks)
        self._chunk, self._tell, self._checked, self._broken = chunk, tell or tell_nothing, False, False

    @property
    def onset(self) -> int | None:
        """The number of epochs after which memorization was first seen; None before."""
        return next((audit.epoch for audit in self.history if audit.begun), None)

    def check(self, model: Any) -> None:
        """Refuse in one sentence a model that cannot be audited; the first call does so too."""
        with _random_state_kept(model):
            probe_model(at_most(model, self._chunk), self._samples[0].images, count=len(self._samples[0].images))
        self._checked = True

    def __call__(self, model: Any, epoch: int) -> SampleAudit | None:
        """Audit the sample if it is due after so many epochs.

        Args:
            model: The model that is trained.
            epoch: The number of epochs done.

        Returns:
            The audit; None if none is due.
        """
        if not is_whole(epoch):
            raise InputError(f"The number of epochs done is a whole number; got {epoch!r}.")
        if not self._checked:
            self.check(model)
        if epoch % self.every:
            return None
        already = self.onset is not None
        with _random_state_kept(model):
            (train, train_broken), (control, control_broken) = (
                self._recovered(model, name) for name in ("train", "control")
            )
        self._tell_if_broken(train_broken and control_broken, epoch)
        audit = SampleAudit(epoch, train, control, self.shows_memorization(train, control))
        self.history.append(audit)
        if audit.begun and not already:
            self._tell(f"Memorization begins. {audit}")
        return audit

    def shows_memorization(self, train: Rate, control: Rate) -> bool:
        """Return whether these shares are evidence: far enough apart, by more than chance (Newcombe's interval)."""
        above = excess(train, control)
        return above.value >= self.begins_at and above.low > 0

    def _recovered(self, model: Any, set_name: str) -> tuple[Rate, bool]:
        """Count the images of a set that are recovered under any mask, and say whether all recoveries diverged."""
        method = self._method or KnownMask((papers_setting_for(model) or Setting()).gamma)
        scores, diverged = [], []
        for damaged in self._samples:
            if damaged.set == set_name:
                seen = observe(damaged.images, damaged.truth)
                recovery = recover(method, model, seen, chunk=self._chunk)
                scores.append(Score.of(recovery.estimate, damaged.images.pixels))
                diverged.append(bool((recovery.stop == Stop.DIVERGED).all()))
        return Score.best_of(scores).rate(self.threshold.mse), all(diverged)

    def _tell_if_broken(self, broken: bool, epoch: int) -> None:
        """Say once that the model returns no finite images any more: nothing recovered then means nothing."""
        if broken and not self._broken:
            self._broken = True
            self._tell(f"After {counted(epoch, 'epoch')} the model's outputs are not finite, so nothing is recovered.")


@contextmanager
def _random_state_kept(model: Any) -> Iterator[None]:
    """Leave the random numbers of the training as they are, also if the model draws some."""
    device = device_of(model)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


def _damaged_samples(train: Any, control: Any, count: int, masks: Any) -> list[DamagedSet]:
    """Sample both sets and damage them once; unseen images that are copies of training images are left out."""
    sets = load_sets(train, control)
    if "control" not in sets:
        raise InputError("A monitor needs unseen images too: what is recovered of both is no sign of memorization.")
    samples: dict[str, Images] = {name: images[images.spread(count)] for name, images in sets.items()}
    copies = find_copies({**sets, "control": samples["control"]})
    damaged = damage(samples, read_masks(masks), ["zero"], SEED)
    return leave_out(damaged, "control", [pair.first for pair in copies.across])


def _check_numbers(every: int, images: int, begins_at: float, chunk: int | None) -> None:
    if not is_whole(every, 1):
        raise InputError(f"every is a number of epochs, 1 or more; got {every!r}.")
    if not is_whole(images, FEWEST):
        raise InputError(f"images is a number of images, {FEWEST} or more; got {images!r}.")
    if not is_number(begins_at) or not 0 < begins_at < 1:
        raise InputError(f"begins_at is a share of the training images, between 0 and 1; got {begins_at!r}.")
    if chunk is not None and not is_whole(chunk, 1):
        raise InputError(f"chunk is a number of images, 1 or more; got {chunk!r}.")
