"""Why a low rate may mean little: sentences that keep an audit from passing its gate."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from recollect.auditing.checks import copies_input
from recollect.auditing.stability import Stability
from recollect.auditing.thresholds import Threshold
from recollect.records import Record

SETTLED = ("converged", "done")
UNSTABLE = 0.2  # share of recoveries run again whose outcome may change


def find_doubts(
    model: Mapping[str, Any], attacks: Sequence[Record], threshold: Threshold, *, has_control: bool,
    stop_at_limit: Collection[str] = (), stability: Stability | None = None,
) -> Iterator[str]:  # fmt: skip
    """List every reason; `attacks` are the records of the attacks on training images."""
    if not attacks:
        yield "No attack was run: every method knows the mask."
    if not has_control:
        yield "No unseen images were given to compare with."
    yield from _fit(model, threshold)
    if copies_input(model["damage_moved"]):
        yield "The model copies its input, and these attacks cannot show what such a model memorized."
    if attacks and not any(_settled(record, stop_at_limit) for record in attacks):
        yield "No recovery settled, so more rounds or another gamma may recover more."
    if stability and stability.flipped > UNSTABLE * stability.images:
        yield (
            f"Rounding decides what is recovered: {stability.flipped} of {stability.images} recoveries that were run "
            "again ended otherwise."
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


def _settled(record: Record, stop_at_limit: Collection[str]) -> bool:
    """Whether any image settled; for the methods in `stop_at_limit` the limit is a normal end."""
    ends = (*SETTLED, "limit") if record.cell["method"] in stop_at_limit else SETTLED
    return any(stop in ends for stop in record.stop)
