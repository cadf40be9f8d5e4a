"""May this audit be trusted? Each check is one plain sentence about what could make the number mislead."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from recollect.images import Images
from recollect.records import Record
from recollect.scoring import ACCURATE, APPROXIMATE, Score

Level = Literal["ok", "note", "warning"]
COPIES = 0.02  # of the damage: a model that moves less hands on what it is given
FLOAT32_FLOOR = 1e-13  # MSE: below this a float32 network's own rounding decides, where it could not be measured
_STOPS = {"limit": "hit the limit of rounds", "cycle": "went in a cycle", "diverged": "diverged"}


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
    told = f"{train_loss:.1e}, far from a fit" if math.isfinite(train_loss) else "not a finite number"
    return Check(
        "fit", "warning",
        f"The train loss is {told}: low rates mean little here. Check that the images, their range and the model "
        "belong together.",
    )  # fmt: skip


def check_copying(damage_moved: float | None) -> Check | None:
    """A model that copies its input has no reason to prefer what it remembers; the attack needs one that restores."""
    if damage_moved is None or not damage_moved < COPIES:
        return None
    return Check(
        "copying", "warning",
        f"The model hands damaged images on nearly unchanged (it moves them by {damage_moved:.1%} of the damage): it "
        "copies what it is given, so what it may remember cannot be read back this way, and a low rate says little.",
    )  # fmt: skip


def check_control(images: int | None) -> Check:
    if images is None:
        return Check(
            "control", "warning",
            "There is no control set, so nothing shows that recovery comes from memory and not from the method; "
            "give images that were never trained on.",
        )  # fmt: skip
    return Check("control", "ok", f"{images} control images, never trained on, took the same path.")


def check_overlap(overlapping: int, control: int) -> Check:
    """Control images that also are in train, exactly or nearly."""
    if overlapping:
        return Check(
            "overlap", "warning",
            f"{overlapping} of the {control} control images equal or nearly equal a training image: recovering them is "
            "no false alarm, and the control rate is too high by up to that many.",
        )  # fmt: skip
    return Check("overlap", "ok", "No control image equals or nearly equals a training image.")


def check_duplicates(repeated: int, train: int) -> Check:
    """Training images that are there twice."""
    if repeated:
        return Check(
            "duplicates", "note",
            f"{repeated} of the {train} training images have an equal or nearly equal twin in the set; repeated images "
            "are memorized more easily and raise the rate.",
        )  # fmt: skip
    return Check("duplicates", "ok", "No training image appears twice.")


def check_black(images: Images, chunk: int = 1024) -> Check:
    """Erased values are zero too: original zeros look the same, and the mask is estimated value by value."""
    zeros = sum(int((images[i : i + chunk].pixels == 0).sum()) for i in range(0, len(images), chunk))
    share = zeros / (len(images) * math.prod(images.shape))
    if not zeros:
        return Check("black", "ok", "No original value is exactly zero, so nothing but erased pixels looks erased.")
    told = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
    level: Level = "warning" if share > 0.01 else "note"
    return Check(
        "black", level,
        f"Original images contain exact zeros ({told} of their values), which look like erased ones: there no method "
        "can tell from the damaged image what was erased.",
    )  # fmt: skip


def check_zero_rule(records: Sequence[Record], beside: str = "blind") -> Check | None:
    """Is the mask given away by the zeros in y? The rule's own rate stands beside that of the method."""
    rule = [r for r in records if r.cell["method"] == "zero-rule" and r.cell["set"] == "train"]
    found = [accuracy == 1.0 for r in rule for accuracy in r.mask_accuracy or []]
    if not found:
        return None
    share, method = sum(found) / len(found), [r for r in records if r.cell["method"] == beside]
    rates = f"recovers {_accurate(rule):.0%} accurately"
    if method:
        rates += f", {beside} {_accurate([r for r in method if r.cell['set'] == 'train']):.0%}"
    sentence = (
        f'The simple rule "zero pixels were erased" finds the exact mask in {share:.0%} of the tries on training '
        f"images and {rates}"
    )
    if share > 0.5:
        return Check("zero-rule", "note", f"{sentence}: estimating the mask is easy here.")
    return Check("zero-rule", "ok", f"{sentence}: the mask has to be estimated.")


def check_stops(records: Sequence[Record]) -> Check:
    """Runs that did not settle by themselves; iteration that goes on to its limit is no cause for worry."""
    told, level = [], "ok"
    for method in dict.fromkeys(r.cell["method"] for r in records):
        stops = Counter(stop for r in records if r.cell["method"] == method for stop in r.stop)
        total, missed = sum(stops.values()), {word: stops[word] for word in _STOPS if stops[word]}
        if not missed:
            continue
        told.append(f"of {total} by {method}, " + ", ".join(f"{n} {_STOPS[word]}" for word, n in missed.items()))
        bad = sum(missed.values()) > 0.2 * total and method != "iterate"
        level = "warning" if bad or missed.get("diverged", 0) > 0.05 * total or level == "warning" else "note"
    if not told:
        return Check("stops", "ok", "Every recovery settled by itself.")
    return Check("stops", level, f"Not every recovery settled: {'; '.join(told)}.")  # type: ignore[arg-type]


def check_float32_floor(records: Sequence[Record], rounding: float | None) -> Check:
    """`rounding`: the MSE that float32 alone puts into one pass of the model, where that could be measured."""
    floor = FLOAT32_FLOOR if rounding is None else rounding
    if floor > ACCURATE / 10:
        return Check(
            "float32", "warning",
            f"Float32 rounding alone moves this model's output by an MSE of {floor:.0e}, near the accurate threshold "
            f"of {ACCURATE:.0e}: the accurate rate is partly a matter of rounding.",
        )  # fmt: skip
    errors = torch.cat([r.score.mse for r in records if r.cell["set"] == "train"])
    share = float((errors < floor).double().mean())
    if share < 0.01:
        return Check("float32", "ok", f"Float32 rounding (MSE {floor:.0e}) is far below the accurate threshold.")
    return Check(
        "float32", "note",
        f"{share:.0%} of the errors are below {floor:.0e}, where float32 rounding decides: rates at thresholds that "
        "small mean nothing.",
    )  # fmt: skip


def check_prior(prior: Mapping[str, Any]) -> Check:
    """A generic prior that was trained on the audited images recovers them from its own memory."""
    known = prior["known_to_it"]
    if known == "unknown":
        return Check(
            "prior", "note",
            f"What the diffusion prior {prior['name']} was trained on is unknown; if it saw the audited images, what "
            "ddnm recovers may be its own memory.",
        )  # fmt: skip
    sentence = f"The diffusion prior was trained on {prior['trained_on']}, and has seen " + ", ".join(
        f"{found['exact']} of the {found['total']} {name} images exactly and {found['near']} in a nearly equal copy"
        for name, found in known.items()
    )
    if any(found["exact"] or found["near"] for found in known.values()):
        return Check("prior", "warning", f"{sentence}: what ddnm recovers of them may be its own memory.")
    return Check("prior", "ok", f"{sentence}.")


def check_prior_strength(records: Sequence[Record], methods: Sequence[str], beside: Sequence[str]) -> Check | None:
    """A prior that restores less than a smooth surface does says nothing by what it does not restore. By the median of
    all tries: a surface restores flat images perfectly, and a few of them would decide a mean."""
    simple = {(r.cell["set"], r.cell["mask"]): r.score.psnr for r in records if r.cell["method"] in beside}
    if not simple:
        return None
    own = [r for r in records if r.cell["method"] in methods]
    ahead = torch.cat([r.score.psnr - simple[r.cell["set"], r.cell["mask"]] for r in own])
    lead = float(ahead.median())
    sentence = (
        f"The diffusion prior is ahead of a smooth surface through the kept pixels in {int((ahead > 0).sum())} of "
        f"{len(ahead)} tries, by {lead:.1f} dB in the median"
    )
    if lead < 0:
        return Check(
            "prior-strength", "warning", f"{sentence}: it is weak here, and what it does not restore says little."
        )
    return Check("prior-strength", "ok", f"{sentence}.")


def check_attractors(rows: Sequence[Mapping[str, Any]]) -> Check:
    """How being an attractor relates to being recovered."""
    attractors = [r["recovered"] for r in rows if r["attractor"]]
    others = [r["recovered"] for r in rows if not r["attractor"]]
    told = [
        f"{sum(some)} of {len(some)} {what}" for some, what in ((attractors, "attractors"), (others, "others")) if some
    ]
    sentence = (
        f"{len(attractors)} of the {len(rows)} training images examined are attractors (fixed points with all Jacobian "
        f"eigenvalues inside the unit circle); recovered accurately: {' and '.join(told)}"
    )
    recovered_others = sum(others)
    if recovered_others:
        sentence += ", so an image can be read back without being an attractor"
    return Check("attractors", "note", sentence + ".")


def _accurate(records: Sequence[Record]) -> float:
    return Score(torch.cat([r.score.mse for r in records])).accurate.value
