"""An audit in sentences: one that a manager can read, then the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.auditing.checks import Check
from recollect.auditing.statistics import ANY_MASK, OVERALL, Statistics
from recollect.scoring import ACCURATE, APPROXIMATE, Excess, Rate, Score


def headline(statistics: Statistics, *, sees_model: bool = True, knowledge: str = "") -> str:
    """Say how much of the training set is recovered, against how much of images that the model never saw.

    `sees_model` and `knowledge` are what the main method says of itself.
    """
    method = statistics.main_method
    train = statistics.rate("train", ANY_MASK, method)
    roughly = statistics.rate("train", ANY_MASK, method, APPROXIMATE)
    source = "recovered almost exactly from this model" if sees_model else "restored almost exactly without this model"
    by = f", by {knowledge}" if knowledge else ""
    recovered = (
        f"{_share(train)} of the {train.total} training images can be {source} (95% interval {_range(train)}) and "
        f"{_share(roughly)} approximately ({_range(roughly)}), from copies damaged {_ways(len(statistics.masks))}{by}"
    )
    if not statistics.has_control:
        return f"{recovered}; no control images were given, so nothing shows that the model memorized them."
    control = statistics.rate("control", ANY_MASK, method)
    also = statistics.rate("control", ANY_MASK, method, APPROXIMATE)
    return (
        f"{recovered}; of {control.total} images that it never saw, {_share(control)} ({_range(control)}) and "
        f"{_share(also)} ({_range(also)})."
    )


def attribution(
    statistics: Statistics, prior: Mapping[str, Any] | None, without_model: Sequence[str], noise_std: float
) -> str | None:
    """Say what only the model recovers; None where no prior was tried.

    Priors restore hardly anything almost exactly, so an image that they restore approximately is not attributed.
    """
    method = statistics.main_method
    if not prior or method in without_model:
        return None
    if noise_std:
        return "No attribution: with noise, what a generic prior restores keeps the noise of the kept pixels."
    own = statistics.score("train", ANY_MASK, method).mse
    generic = Score.best_of([statistics.score("train", ANY_MASK, name) for name in without_model])
    restored = generic.mse < APPROXIMATE
    exactly, roughly = (int(((own < threshold) & ~restored).sum()) for threshold in (ACCURATE, APPROXIMATE))
    return (
        f"Attribution: of {len(own)} training images, {method} recovers {exactly} almost exactly and {roughly} "
        f"approximately that nothing restores approximately without this model. {_without_model(prior)} "
        f"{int(restored.sum())} approximately."
    )


def _without_model(prior: Mapping[str, Any]) -> str:
    generic, beside = f"A generic prior ({', '.join(prior['methods'])})", ", ".join(prior["beside"])
    if not beside:
        return f"{generic} that knows the masks restores"
    return f"{generic} and simple inpainting ({beside}), which know the masks, restore"


def printout(
    statistics: Statistics, headline: str, attribution: str | None, checks: Sequence[Check], tuned_on: int
) -> str:
    """Write the headline, the rates with their intervals, the other methods, membership, and the checks."""
    lines = [headline]
    lines += ["", *_rates(statistics, "Almost exactly", ACCURATE)]
    lines += ["", *_rates(statistics, "Approximately", APPROXIMATE)]
    if len(statistics.methods) > 1:
        lines += ["", *_methods(statistics)]
    if attribution:
        lines += ["", attribution]
    lines += _membership(statistics)
    if tuned_on:
        lines += ["", f"Gamma and start were searched on {tuned_on} other training images, left out of every rate."]
    if worrying := [f"{check.level}: {check.sentence}" for check in checks if check.level != "ok"]:
        lines += ["", *worrying]
    return "\n".join(lines)


def _membership(statistics: Statistics) -> list[str]:
    attack = statistics.membership()
    if attack is None:
        return []
    return [
        "",
        f"Telling training from control images by the error ({statistics.main_method}): AUC {attack.auc:.3f} (0.5 is "
        f"guessing), and {attack.tpr_at_1_fpr:.0%} of the training images are found at 1% false positives.",
    ]


def _rates(statistics: Statistics, how: str, threshold: float) -> Iterator[str]:
    """Give a row a mask: train, control and the excess, with intervals."""
    method, masks = statistics.main_method, statistics.masks
    if len(masks) > 1:
        masks = [*masks, *OVERALL]
    width = max(len(mask) for mask in [*masks, *OVERALL]) + 2
    yield f"{how} recovered (MSE below {threshold:.0e}) by {method}, in percent with 95% intervals"
    titles = "".join(f"{set_name:<20}" for set_name in statistics.sets)
    yield " " * width + titles + ("excess over control" if statistics.has_control else "")
    for mask in masks:
        cells = "".join(f"{_cell(statistics.rate(s, mask, method, threshold)):<20}" for s in statistics.sets)
        yield f"{mask:<{width}}{cells}{_signed(statistics.excess(method, threshold, mask))}".rstrip()


def _methods(statistics: Statistics) -> Iterator[str]:
    """Put all methods side by side on the training images, with the best of all masks on control images below."""
    rows = [("train", mask, mask) for mask in statistics.masks]
    if len(rows) > 1:
        rows.append(("train", ANY_MASK, ANY_MASK))
    if statistics.has_control:
        rows.append(("control", ANY_MASK, f"control, {ANY_MASK}"))
    first = max(len(label) for _, _, label in rows) + 2
    width = max(9, *(len(method) for method in statistics.methods)) + 3
    yield "All methods on the training images, almost exactly / approximately recovered, in percent"
    yield " " * first + "".join(f"{method:>{width}}" for method in statistics.methods)
    for set_name, mask, label in rows:
        cells = [_pair(statistics.score(set_name, mask, method)) for method in statistics.methods]
        yield f"{label:<{first}}" + "".join(f"{cell:>{width}}" for cell in cells)


def _pair(score: Score) -> str:
    return f"{100 * score.accurate.value:.0f} / {100 * score.approximate.value:.0f}"


def _cell(rate: Rate) -> str:
    low, high = rate.interval
    return f"{100 * rate.value:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _signed(above: Excess | None) -> str:
    if above is None:
        return ""
    return f"{100 * above.value:+.0f} [{100 * above.low:+.0f}, {100 * above.high:+.0f}]"


def _ways(masks: int) -> str:
    return f"in at least one of {masks} ways" if masks > 1 else "in one way"


def _share(rate: Rate) -> str:
    """Write a share in whole percent, but never 0% of something nor 100% of not all."""
    if 0 < rate.value < 0.01:
        return f"{rate.value:.2%}"
    return f"{rate.value:.1%}" if 0.99 < rate.value < 1 else f"{rate.value:.0%}"


def _range(rate: Rate) -> str:
    low, high = rate.interval
    return f"{low:.0%} to {high:.0%}"
