"""Why a low rate may mean little: sentences that keep an audit from passing its gate."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.auditing.checks import copies_input
from recollect.auditing.stability import Stability
from recollect.auditing.thresholds import EXACT, Threshold
from recollect.models import Probe
from recollect.records import Record
from recollect.scoring import Score

SETTLED = ("converged", "done")
FEWEST_SETTLED = 0.5  # share of the images on which at least one attack has to settle
UNSTABLE = 0.2  # share of recoveries run again whose outcome may change
RESTORED = 0.5  # share of unseen images; where more are recovered, memory hardly shows
LEAST_KEPT = 0.05  # share of the values of an image that some mask has to keep
MOST_NOISE = 0.25  # standard deviation; images have values from 0 to 1
RESTORED_EXACTLY = 0.05  # share of unseen images; erased pixels cannot be guessed this exactly


@dataclass(frozen=True)
class Evidence:
    """What the doubts are looked for in."""

    model: Mapping[str, Any]  # as in audit.json
    probe: Probe
    attacks: Sequence[Record]  # of the attacks on training images
    control: Score | None  # the smallest error of each unseen image over all attacks
    kept: float = 1.0  # the largest share of the values of training images that a mask keeps
    noise_std: float = 0.0
    strongest_left_out: str = ""  # the name of the strongest attack there is, if it was not run
    weaknesses: Sequence[str] = ()  # what its settings make weaker in that attack
    stop_at_limit: Collection[str] = ()  # attacks for which the limit is a normal end
    stability: Stability | None = None


def find_doubts(evidence: Evidence, threshold: Threshold) -> Iterator[str]:
    """List every reason."""
    yield from _attacks(evidence)
    yield from _damage(evidence)
    yield from _unseen(evidence.control, threshold)
    yield from _strictness(threshold)
    yield from _fit(evidence.model, threshold)
    yield from _behaviour(evidence)
    yield from _endings(evidence)
    stability = evidence.stability
    if stability and stability.flipped > UNSTABLE * stability.images:
        yield (
            f"Rounding decides what is recovered: {stability.flipped} of {stability.images} recoveries that were run "
            "again ended otherwise."
        )


def _attacks(evidence: Evidence) -> Iterator[str]:
    if not evidence.attacks:
        yield "No attack was run: every method knows the mask."
    elif evidence.strongest_left_out:
        yield f"The attack {evidence.strongest_left_out}, usually the strongest, was not run; add it to the methods."
    elif evidence.weaknesses:
        yield f"The settings of the strongest attack weaken it: {' and '.join(evidence.weaknesses)}."


def _damage(evidence: Evidence) -> Iterator[str]:
    """Doubt attacks that were given next to nothing of an image."""
    left = "The damaged images show too little to recover anything from"
    if evidence.kept < LEAST_KEPT:
        yield f"{left}: no mask keeps more than {evidence.kept:.1%} of an image."
    if evidence.noise_std > MOST_NOISE:
        yield f"{left}: the noise (standard deviation {evidence.noise_std:g}) hides them."


def _unseen(control: Score | None, threshold: Threshold) -> Iterator[str]:
    """Doubt a comparison with images that any model restores, or that were not unseen."""
    if control is None:
        yield "No unseen images were given to compare with."
        return
    exactly, restored = control.rate(EXACT.mse), control.rate(threshold.mse)
    if exactly.value > RESTORED_EXACTLY:
        yield (
            f"{exactly.count} of {exactly.total} unseen images are recovered accurately: the model was trained on "
            "them too, or the damage takes hardly anything away."
        )
    elif restored.value > RESTORED:
        yield (
            f"{restored.count} of {restored.total} unseen images are recovered too, so memory hardly shows; take masks "
            "that erase more, or a smaller threshold."
        )


def _behaviour(evidence: Evidence) -> Iterator[str]:
    if copies_input(evidence.model["damage_moved"]):
        yield "The model copies its input, and these attacks cannot show what such a model memorized."
    if not evidence.probe.deterministic:
        yield "The model is not deterministic, and its noise may hide what it memorized."
    if evidence.probe.batch_influence:
        yield "Outputs depend on the other images of a batch, which may hide what the model memorized; set --batch 1."


def _endings(evidence: Evidence) -> Iterator[str]:
    if not evidence.attacks:
        return
    settled = [any(ends) for ends in zip(*(_settled(record, evidence) for record in evidence.attacks), strict=True)]
    if sum(settled) < FEWEST_SETTLED * len(settled):
        count = f"Recoveries of only {sum(settled)} of {len(settled)} images" if any(settled) else "No recovery"
        yield f"{count} settled, so more rounds or another gamma may recover more."


def _settled(record: Record, evidence: Evidence) -> list[bool]:
    ends = (*SETTLED, "limit") if record.cell["method"] in evidence.stop_at_limit else SETTLED
    return [stop in ends for stop in record.stop]


def _strictness(threshold: Threshold) -> Iterator[str]:
    if threshold.mse < EXACT.mse:
        yield (
            f"The threshold of {threshold.mse:g} is below {EXACT.mse:g}, so copies that differ by less than a tenth of "
            "a grey level may not count."
        )


def _fit(model: Mapping[str, Any], threshold: Threshold) -> Iterator[str]:
    loss = model["train_loss"]
    if loss <= threshold.mse:
        return
    if model["weights_given"] is False:
        yield "No weights were given to the factory, and its network does not fit the training images; set --weights."
        return
    amount = f"{loss:.1e}" if math.isfinite(loss) else "not a finite number"
    yield (
        f"The model does not fit its training images well enough to reproduce them: the train loss is {amount}, above "
        f"the threshold of {threshold.mse:g}."
    )
