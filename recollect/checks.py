"""May this audit be trusted? Each check is one plain sentence about what could make the number mislead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from recollect.records import Record
from recollect.scoring import ACCURATE, APPROXIMATE

Level = Literal["ok", "note", "warning"]
FLOAT32_FLOOR = 1e-13  # MSE: below this a float32 network's own rounding decides


@dataclass(frozen=True)
class Check:
    name: str
    level: Level
    sentence: str


def check_determinism(deterministic: bool) -> Check:
    if deterministic:
        return Check("deterministic", "ok", "The model gives the same output for the same input.")
    return Check(
        "deterministic", "warning",
        "The model is not deterministic (dropout or sampling in its forward pass?), so errors carry noise of its own "
        "and low rates may come from that.",
    )  # fmt: skip


def check_fit(train_loss: float) -> Check:
    """Recovery cannot be more exact than the fit it rests on."""
    if train_loss <= ACCURATE:
        return Check("fit", "ok", f"The model fits its training set (train loss {train_loss:.1e}).")
    if train_loss <= APPROXIMATE:
        return Check(
            "fit", "note",
            f"The train loss is {train_loss:.1e}, above the accurate threshold of {ACCURATE:.0e}: accurate recovery is "
            "out of reach for most images, so read the approximate rate.",
        )  # fmt: skip
    return Check(
        "fit", "warning",
        f"The train loss is {train_loss:.1e}, far from a fit: low rates mean little here. Check that the images, their "
        "range and the model belong together.",
    )  # fmt: skip


def check_control(images: int | None) -> Check:
    if images is None:
        return Check(
            "control", "warning",
            "There is no control set, so nothing shows that recovery comes from memory and not from the method; "
            "give images that were never trained on.",
        )  # fmt: skip
    return Check("control", "ok", f"{images} control images, never trained on, took the same path.")


def check_duplicates(across: int, inside: int) -> Check:
    """`across`: control images that also are in train; `inside`: repeated training images."""
    if across:
        return Check(
            "duplicates", "warning",
            f"{across} control images equal or nearly equal a training image: recovering them is no false alarm, "
            "and the control rate is too high by up to that many.",
        )  # fmt: skip
    if inside:
        return Check(
            "duplicates", "note",
            f"{inside} training images have an equal or nearly equal twin in the set; repeated images are memorized "
            "more easily and raise the rate.",
        )  # fmt: skip
    return Check("duplicates", "ok", "No image appears twice, in train or across train and control.")


def check_black(pixels: Tensor) -> Check:
    """Erased pixels are zero too: original black ones look the same."""
    black = float((pixels == 0).all(1).double().mean())
    if black > 0.01:
        return Check(
            "black", "warning",
            f"{black:.1%} of the original pixels are exactly black, and look like erased ones: the mask cannot be told "
            "there, by any method.",
        )  # fmt: skip
    return Check("black", "ok", f"Original pixels are hardly ever exactly black ({black:.2%}).")


def check_zero_rule(records: Sequence[Record]) -> Check | None:
    """Is the mask given away by the zeros in y?"""
    rule = [r for r in records if r.cell["method"] == "zero-rule" and r.cell["set"] == "train"]
    found = [accuracy == 1.0 for r in rule for accuracy in r.mask_accuracy or []]
    if not found:
        return None
    share = sum(found) / len(found)
    sentence = f'The simple rule "zero pixels were erased" finds the exact mask of {share:.0%} of the training images'
    if share > 0.5:
        return Check("zero-rule", "note", f"{sentence}, so estimating it is easy here; its rate is beside blind's.")
    return Check("zero-rule", "ok", f"{sentence}; the mask has to be estimated.")


def check_stops(records: Sequence[Record]) -> Check:
    """Runs that did not settle by themselves."""
    stops = Counter(stop for r in records if r.cell["method"] in ("blind", "refined") for stop in r.stop)
    total = sum(stops.values())
    unsettled = {word: stops[word] for word in ("limit", "cycle", "diverged") if stops[word]}
    if not unsettled:
        return Check("stops", "ok", "Every blind recovery settled by itself.")
    told = ", ".join(f"{n} {word}" for word, n in unsettled.items())
    share = sum(unsettled.values()) / total
    level: Level = "warning" if share > 0.2 or stops["diverged"] > 0.05 * total else "note"
    return Check("stops", level, f"{share:.0%} of the blind recoveries did not settle ({told} of {total}).")


def check_float32_floor(records: Sequence[Record]) -> Check | None:
    errors = torch.cat([r.score.mse for r in records if r.cell["set"] == "train"])
    share = float((errors < FLOAT32_FLOOR).double().mean())
    if share < 0.01:
        return None
    return Check(
        "float32", "note",
        f"{share:.0%} of the errors are below {FLOAT32_FLOOR:.0e}, where float32 rounding decides: rates at thresholds "
        "that small mean nothing.",
    )  # fmt: skip
