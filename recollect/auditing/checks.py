"""Checks of an audit: each is one plain sentence about what could make the number mislead."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.counting import counted
from recollect.records import SET_LABELS, Record
from recollect.scoring import ACCURATE, APPROXIMATE, Score

if TYPE_CHECKING:
    from recollect.auditing.stability import Stability
    from recollect.images import Images

Level = Literal["ok", "note", "warning"]
COPIES = 0.02  # of the damage: a model that moves less copies its input
NAMED = 10  # images that a sentence names; audit.json names all
FLOAT32_ROUNDING = 1e-13  # MSE of a float32 network's own rounding, where it could not be measured
_STOPS = {"limit": "hit the limit of rounds", "cycle": "ended in a cycle", "diverged": "diverged"}


@dataclass(frozen=True)
class Check:
    """One finding: ok, a note for the reader, or a warning."""

    name: str
    level: Level
    sentence: str


def check_determinism(deterministic: bool) -> Check:
    """Check that the model gives the same output twice."""
    if deterministic:
        return Check("deterministic", "ok", "The model gives the same output for the same input.")
    return Check(
        "deterministic", "warning",
        "The model is not deterministic. Does its forward pass use dropout or sampling? Its noise is part of every "
        "error and may be the reason for low rates.",
    )  # fmt: skip


def check_form(audited_as: str | None) -> Check | None:
    """Tell how a model is audited whose own form is no autoencoder's."""
    return Check("form", "note", audited_as) if audited_as else None


def check_batch(influence: float | None) -> Check | None:
    """Check that an output does not depend on the other images of its batch; None where chance hides it."""
    if influence is None:
        return None
    if not influence:
        return Check("batch", "ok", "The output for one image does not depend on the other images of its batch.")
    return Check(
        "batch", "warning",
        f"The output for one image changes with the other images of its batch, by up to {influence:.1%} of its largest "
        "value. Does the model use statistics of the batch, or attention over it? Rates then depend on which images "
        "are attacked together. --batch 1 computes each image alone.",
    )  # fmt: skip


def check_range(doubt: str) -> Check | None:
    """Warn if another range of values fits far better than the one that was stated."""
    return Check("range", "warning", doubt) if doubt else None


def check_weights(given: bool | None, train_loss: float) -> Check | None:
    """Say that a factory was given no file of weights: the network may then be untrained."""
    if given is not False:
        return None
    if train_loss <= APPROXIMATE:
        return Check(
            "weights", "note",
            "No weights were given to the factory (--weights): the network has those that its own code loads.",
        )  # fmt: skip
    return Check(
        "weights", "warning",
        "No weights were given to the factory, and its network does not fit the training images; set --weights.",
    )  # fmt: skip


def check_fit(train_loss: float) -> Check:
    """Check that the model is fitted well enough: recovery cannot be more exact than the fit."""
    if train_loss <= ACCURATE:
        return Check("fit", "ok", f"The model fits its training set (train loss {train_loss:.1e}).")
    if train_loss <= APPROXIMATE:
        return Check(
            "fit", "note",
            f"The train loss is {train_loss:.1e}, above the accurate threshold of {ACCURATE:.0e}: most images cannot "
            "be recovered accurately, so read the approximate rate.",
        )  # fmt: skip
    loss = f"{train_loss:.1e}, far from a fit" if math.isfinite(train_loss) else "not a finite number"
    return Check(
        "fit", "warning",
        f"The train loss is {loss}: low rates mean little here. Check that the images, their range and the model "
        "belong together.",
    )  # fmt: skip


def copies_input(damage_moved: float | None) -> bool:
    """Return whether a model returns damaged images nearly unchanged."""
    return damage_moved is not None and damage_moved < COPIES


def check_copying(damage_moved: float | None) -> Check | None:
    """Warn if the model copies its input: attacks need a model that restores what it memorized."""
    if damage_moved is None or not copies_input(damage_moved):
        return None
    return Check(
        "copying", "warning",
        f"The model returns damaged images nearly unchanged (it moves them by {damage_moved:.1%} of the damage). These "
        "attacks cannot show what such a model memorized. A low rate means little.",
    )  # fmt: skip


def check_control(images: int | None) -> Check:
    """Check that there are unseen images to compare with."""
    if images is None:
        return Check(
            "control", "warning",
            "There are no unseen images to compare with. Nothing shows that recovery comes from the model's memory and "
            "not from the method. Give images that the model never saw as control.",
        )  # fmt: skip
    return Check("control", "ok", f"The same attacks ran on {counted(images, 'image')} that the model never saw.")


def check_overlap(copies: Sequence[str], control: int) -> Check:
    """Count control images that are in train too, equal, nearly equal, mirrored or shifted; no rate counts them."""
    if not copies:
        return Check("overlap", "ok", "No unseen image is a copy of a training image, also mirrored or shifted.")
    named = ", ".join(copies[:NAMED])
    more = f" and {len(copies) - NAMED} more" if len(copies) > NAMED else ""
    return Check(
        "overlap", "warning",
        f"{len(copies)} of the {control} unseen images are copies of training images (equal, nearly equal, mirrored "
        f"or shifted). No rate counts them: {named}{more}.",
    )  # fmt: skip


def check_duplicates(repeated: int, train: int) -> Check:
    """Count training images that are in the set twice."""
    if repeated:
        return Check(
            "duplicates", "note",
            f"{repeated} of the {train} training images have an equal or nearly equal duplicate in the set. Repeated "
            "images are memorized more easily and raise the rate.",
        )  # fmt: skip
    return Check("duplicates", "ok", "No training image appears twice.")


def check_black(images: Images, chunk: int = 1024) -> Check:
    """Count zeros in the originals: erased values are zero too, and the mask is estimated value by value."""
    zeros = sum(int((images[i : i + chunk].pixels == 0).sum()) for i in range(0, len(images), chunk))
    share = zeros / (len(images) * math.prod(images.shape))
    if not zeros:
        return Check("black", "ok", "No original value is exactly zero, so zeros are erased pixels.")
    amount = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
    lowest = 0.0 if images.kind == "images" else 1 / len(images)  # a stated range makes the least of each column zero
    level: Level = "warning" if share > max(0.01, lowest) else "note"
    return Check(
        "black", level,
        f"Original images contain exact zeros ({amount} of their values). Erased values are zero too, so no method can "
        "tell the two apart.",
    )  # fmt: skip


def check_zero_rule(records: Sequence[Record], rules: Collection[str], beside: Sequence[str]) -> Check | None:
    """Compare methods that read the mask off the zeros of a damaged image with those `beside` them."""
    rule = _on_train(records, rules)
    exact = [accuracy == 1.0 for record in rule for accuracy in record.mask_accuracy or []]
    if not exact:
        return None
    share, rates = sum(exact) / len(exact), f"It recovers {_accurate(rule):.0%} accurately"
    for name in beside:
        if attacked := _on_train(records, [name]):
            rates += f", {name} {_accurate(attacked):.0%}"
    sentence = (
        f'The simple rule "zero pixels were erased" finds the exact mask in {share:.0%} of the tries on training '
        f"images. {rates}"
    )
    if share > 0.5:
        return Check("zero-rule", "note", f"{sentence}. Estimating the mask is easy here.")
    return Check("zero-rule", "ok", f"{sentence}. The mask has to be estimated.")


def check_stops(records: Sequence[Record], stop_at_limit: Collection[str] = ()) -> Check:
    """Check that every recovery settled; for the methods in `stop_at_limit` the limit is a normal end."""
    sentences, worrying = [], False
    for method, stops in _stops_by_method(records).items():
        total, missed = sum(stops.values()), {stop: stops[stop] for stop in _STOPS if stops[stop]}
        if not missed:
            continue
        counts = ", ".join(f"{count} of {total} {_STOPS[stop]}" for stop, count in missed.items())
        sentences.append(f"{method}, {counts}")
        many = sum(missed.values()) > 0.2 * total and method not in stop_at_limit
        worrying |= many or missed.get("diverged", 0) > 0.05 * total
    if not sentences:
        return Check("stops", "ok", "Every recovery settled.")
    level: Level = "warning" if worrying else "note"
    return Check("stops", level, f"Some recoveries did not settle: {'; '.join(sentences)}.")


def check_rounding(records: Sequence[Record], measured: float | None) -> Check:
    """Check that float32 rounding decides no rate; `measured` is its MSE in one pass, None where unknown."""
    rounding = FLOAT32_ROUNDING if measured is None else measured
    if rounding > ACCURATE / 10:
        return Check(
            "float32", "warning",
            f"Float32 rounding alone moves this model's output by an MSE of {rounding:.0e}, near the accurate "
            f"threshold of {ACCURATE:.0e}: the accurate rate depends on rounding.",
        )  # fmt: skip
    errors = np.concatenate([r.score.mse for r in records if r.cell["set"] == "train"])
    share = float((errors < rounding).mean())
    if share < 0.01:
        return Check("float32", "ok", f"Float32 rounding (MSE {rounding:.0e}) is far below the accurate threshold.")
    return Check(
        "float32", "note",
        f"{share:.0%} of the errors are below {rounding:.0e}, where float32 rounding decides: rates at such small "
        "thresholds mean nothing.",
    )  # fmt: skip


def check_stability(stability: Stability) -> Check:
    """Check that single answers stay where they are if the arithmetic changes."""
    name, changes = "stability", " and in ".join(stability.changes)
    sample = f"{stability.images} recoveries of {stability.method} under {stability.mask} were repeated in {changes}."
    if not stability.moved and not stability.flipped:
        return Check(name, "ok", f"Answers are stable. {sample} None moved by more than {stability.threshold:.0e}.")
    level: Level = "warning" if stability.flipped else "note"
    return Check(
        name, level,
        f"Answers depend on rounding. {sample} {stability.moved} of them ({stability.share_moved:.0%}) moved by more "
        f"than {stability.threshold:.0e} (MSE), by up to {stability.largest:.1e}. The outcome "
        f"changed for {stability.flipped}.",
    )  # fmt: skip


def check_prior(prior: Mapping[str, Any]) -> Check:
    """Check whether the prior was trained on audited images: it may recover these from its own memory."""
    known, names = prior["known_to_it"], ", ".join(prior["methods"])
    if known == "unknown":
        return Check(
            "prior", "note",
            f"The training images of the diffusion prior {prior['name']} are unknown. If it saw the audited images, "
            f"{names} may recover them from its own memory.",
        )  # fmt: skip
    sentence = f"The diffusion prior was trained on {prior['trained_on']}, and has seen " + ", ".join(
        f"{overlap['exact']} of the {overlap['total']} {SET_LABELS[set_name]} images exactly and {overlap['near']} in "
        "a nearly equal copy"
        for set_name, overlap in known.items()
    )
    if any(overlap["exact"] or overlap["near"] for overlap in known.values()):
        return Check("prior", "warning", f"{sentence}: {names} may recover them from its own memory.")
    return Check("prior", "ok", f"{sentence}.")


def check_prior_strength(records: Sequence[Record], methods: Sequence[str], beside: Sequence[str]) -> Check | None:
    """Check that the prior is stronger than simple inpainting; if not, what it does not restore means little.

    The median of all tries decides: simple inpainting restores flat images perfectly, and a few would decide a mean.
    """
    simple = {(r.cell["set"], r.cell["mask"]): r.score.psnr for r in records if r.cell["method"] in beside}
    if not simple:
        return None
    own = [r for r in records if r.cell["method"] in methods]
    ahead = np.concatenate([r.score.psnr - simple[r.cell["set"], r.cell["mask"]] for r in own])
    lead = float(np.median(ahead))
    sentence = (
        f"The diffusion prior restores more than simple inpainting ({', '.join(beside)}) in {int((ahead > 0).sum())} "
        f"of {len(ahead)} tries. In the median its images are {abs(lead):.1f} dB {'worse' if lead < 0 else 'better'}."
    )
    if lead < 0:
        weak = "The prior is weak here: that it does not restore an image means little."
        return Check("prior-strength", "warning", f"{sentence} {weak}")
    return Check("prior-strength", "ok", sentence)


def check_attractors(rows: Sequence[Mapping[str, Any]]) -> Check:
    """Relate being an attractor to being recovered."""
    attractors = [r["recovered"] for r in rows if r["attractor"]]
    others = [r["recovered"] for r in rows if r["attractor"] is False]
    undecided = len(rows) - len(attractors) - len(others)
    groups = {"attractors": attractors, "others": others}
    counts = [f"{sum(recovered)} of {len(recovered)} {name}" for name, recovered in groups.items() if recovered]
    sentence = (
        f"{len(attractors)} of the {len(rows)} training images examined are attractors (fixed points with all Jacobian "
        f"eigenvalues inside the unit circle); recovered accurately: {' and '.join(counts)}"
    )
    if any(others):
        sentence += ", so an image can be recovered without being an attractor"
    if undecided:
        sentence += f". For {undecided} the eigenvalues did not decide"
    return Check("attractors", "note", sentence + ".")


def _on_train(records: Sequence[Record], methods: Collection[str]) -> list[Record]:
    return [record for record in records if record.cell["method"] in methods and record.cell["set"] == "train"]


def _stops_by_method(records: Sequence[Record]) -> dict[str, Counter[str]]:
    stops: dict[str, Counter[str]] = {}
    for record in records:
        stops.setdefault(record.cell["method"], Counter()).update(record.stop)
    return stops


def _accurate(records: Sequence[Record]) -> float:
    return Score(np.concatenate([r.score.mse for r in records])).accurate.value
