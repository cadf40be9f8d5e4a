"""What one run of a method tells beyond its answer: the answer with and without pasting, and the errors on cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from recollect.degradation import Observation
from recollect.methods import Blind, KnownMask
from recollect.recovery import Recovery, Snapshot, Stop
from recollect.scoring import mse


@dataclass(frozen=True, eq=False)
class Answers:
    """A method's own answer, and the other one: with the kept values of y pasted, or not."""

    own: Tensor
    pasted: Tensor | None = None
    unpasted: Tensor | None = None

    def other_errors(self, originals: Tensor) -> dict[str, list[float]]:
        """Return the errors of the other answer, under the name of a record's column."""
        others = {"mse_pasted": self.pasted, "mse_unpasted": self.unpasted}
        return {name: mse(x, originals).tolist() for name, x in others.items() if x is not None}


def unpasting(method: Any) -> Any:
    """Return the method without its last act, which `both_answers` makes up for; other methods stay as they are."""
    return replace(method, paste=False) if isinstance(method, KnownMask) else method


def both_answers(method: Any, recovery: Recovery, seen: Observation) -> Answers:
    """Paste the kept values of y into what `unpasting(method)` recovered, by the mask that it ended with.

    Noise on y would be pasted too, so there is no other answer with noise.
    """
    theta, x = recovery.degradation, recovery.estimate
    if theta is None or seen.noise_std or not isinstance(method, (Blind, KnownMask)):
        return Answers(x)
    pasted = theta.paste(x, seen.y)
    if isinstance(method, KnownMask) and method.paste:
        return Answers(pasted, unpasted=x)
    return Answers(x, pasted=pasted)


class CycleErrors:
    """A trace callback that follows the error of every round, to tell by how much the members of a cycle differ."""

    def __init__(self, originals: Tensor) -> None:
        self._originals = originals
        self._rounds: list[tuple[Tensor, Tensor, Tensor]] = []  # images, their rounds, their errors

    def __call__(self, snapshot: Snapshot) -> None:
        self._originals = self._originals.to(snapshot.estimate.device)
        difference = snapshot.estimate.double() - self._originals[snapshot.index]
        self._rounds.append((snapshot.index, snapshot.round, difference.flatten(1).square().mean(1)))

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor, Tensor]:
        index, number, error = (torch.cat(column).cpu() for column in zip(*self._rounds, strict=True))
        return index, number, error

    def rows(self, recovery: Recovery, first: int = 0) -> list[list[float]]:
        """Return for each image in a cycle its position, the rounds of the cycle, and the range of its errors.

        `first` is the position of the recovery's first image among the originals. The last round shows the answer, and
        the rounds of one lap before it all members.
        """
        index, number, error = self._table
        assert recovery.cycle is not None
        rows = []
        for image in torch.nonzero(recovery.stop == Stop.CYCLE)[:, 0].tolist():
            length, own = int(recovery.cycle[image]), index == first + image
            errors = error[own][number[own] >= int(recovery.rounds[image]) - length]
            rows.append([image, length, float(errors.min()), float(errors.max())])
        return rows
