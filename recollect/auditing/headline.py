"""An audit in words: one sentence that a manager can read, then the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recollect.auditing.rates import best
from recollect.scoring import ACCURATE, APPROXIMATE, Excess, Rate

if TYPE_CHECKING:
    from recollect.auditing.result import Audit

_FROM_MODEL = "read back almost exactly out of this model"
_KNOWS = {
    "known": ", by a method that is told which pixels were erased",
    "ddnm": ", by a general diffusion model that never saw this one and is told which pixels were erased",
    "biharmonic": ", by a smooth surface through the kept pixels, which it is told",
}


def headline(audit: Audit) -> str:
    """One sentence: how much of the training set, against how much of images that the model never saw."""
    method, any_mask = audit.main_method, audit.overall[-1]
    train = audit.rate("train", any_mask, method)
    roughly = audit.rate("train", any_mask, method, APPROXIMATE)
    masks = f"in at least one of {len(audit.masks)} ways" if len(audit.masks) > 1 else "in one way"
    alone = method in audit.facts["settings"].get("without_model", ())
    back = "restored almost exactly, without this model," if alone else _FROM_MODEL
    told = (
        f"{_share(train)} of the {train.total} training images can be {back} (95% interval {_range(train)}) and "
        f"{_share(roughly)} approximately ({_range(roughly)}), from copies damaged {masks}{_KNOWS.get(method, '')}"
    )
    if not audit.has_control:
        return f"{told}; no control images were given, so nothing shows that this is memory."
    control = audit.rate("control", any_mask, method)
    also = audit.rate("control", any_mask, method, APPROXIMATE)
    return (
        f"{told}; of {control.total} images that it never saw, {_share(control)} ({_range(control)}) and "
        f"{_share(also)} ({_range(also)})."
    )


def attribution(audit: Audit) -> str | None:
    """What the autoencoder gives back and nothing else restores even roughly; None where no prior was tried.

    Priors restore hardly anything almost exactly, so to ask for that would show nothing.
    """
    method, any_mask = audit.main_method, audit.overall[-1]
    prior, without = audit.facts.get("prior"), audit.facts["settings"].get("without_model", ())
    if not prior or method in without:
        return None
    if audit.facts["settings"]["noise_std"]:
        return "No attribution: with noise, what a generic prior restores keeps the noise of the kept pixels."
    own = audit.score("train", any_mask, method).mse
    restored = best([audit.score("train", any_mask, m) for m in without]).mse < APPROXIMATE
    exactly, roughly = (int(((own < t) & ~restored).sum()) for t in (ACCURATE, APPROXIMATE))
    return (
        f"Attribution: of {len(own)} training images, {method} reads {exactly} almost exactly and {roughly} "
        f"approximately out of this model that {_nothing_else(prior)} even approximately under any of these masks; "
        f"restored approximately without this model: {int(restored.sum())}."
    )


def _nothing_else(prior: Mapping[str, Any]) -> str:
    """Of a prior, and of the surface beside it where there is one: that they do not restore."""
    generic, beside = f"a generic prior ({', '.join(prior['methods'])})", ", ".join(prior["beside"])
    if not beside:
        return f"{generic}, told the mask, does not restore"
    return f"neither {generic} nor a smooth surface ({beside}), told the mask, restores"


def in_full(audit: Audit) -> str:
    """The headline, the rates with their intervals, the other methods, membership, and what to be careful about."""
    lines = [headline(audit)]
    lines += ["", *_rates(audit, "Almost exactly", ACCURATE), "", *_rates(audit, "Approximately", APPROXIMATE)]
    if len(audit.methods) > 1:
        lines += ["", *_methods(audit)]
    if told := attribution(audit):
        lines += ["", told]
    if (found := audit.membership()) is not None:
        lines += [
            "",
            f"Telling training from control images by the error ({audit.main_method}): AUC {found.auc:.3f} (0.5 is "
            f"guessing), and {found.tpr_at_1_fpr:.0%} of the training images are found at 1% false accusations.",
        ]
    if spent := audit.facts["settings"].get("tuning_images_left_out"):
        lines += ["", f"Gamma and start were searched on {len(spent)} other training images, left out of every rate."]
    worrying = [c for c in audit.checks if c.level != "ok"]
    lines += ["", *(f"{c.level}: {c.sentence}" for c in worrying)] if worrying else []
    return "\n".join(lines)


def _rates(audit: Audit, how: str, threshold: float) -> Iterator[str]:
    """A row a mask: train, control and the excess, with intervals."""
    method = audit.main_method
    width = max(len(m) for m in [*audit.masks, *audit.overall]) + 2
    yield f"{how} recovered (MSE below {threshold:.0e}) by {method}, in percent with 95% intervals"
    titles = "".join(f"{s:<20}" for s in audit.sets) + ("excess over control" if audit.has_control else "")
    yield " " * width + titles
    for mask in [*audit.masks, *(audit.overall if len(audit.masks) > 1 else ())]:
        cells = "".join(f"{_cell(audit.rate(s, mask, method, threshold)):<20}" for s in audit.sets)
        more = audit.excess(method, threshold, mask)
        yield f"{mask:<{width}}{cells}{_signed(more) if more else ''}".rstrip()


def _methods(audit: Audit) -> Iterator[str]:
    """All methods side by side on the training images, and what the best of all masks gives on control images."""
    any_mask = audit.overall[-1]
    rows = [("train", m, m) for m in audit.masks]
    rows += [("train", any_mask, any_mask)] if len(audit.masks) > 1 else []
    if audit.has_control:
        rows.append(("control", any_mask, f"control, {any_mask}"))
    first = max(len(label) for _, _, label in rows) + 2
    width = max(9, *(len(m) for m in audit.methods)) + 3
    yield "All methods on the training images, almost exactly / approximately recovered, in percent"
    yield " " * first + "".join(f"{m:>{width}}" for m in audit.methods)
    for set_name, mask, label in rows:
        pairs = [[audit.rate(set_name, mask, m, t).value for t in (ACCURATE, APPROXIMATE)] for m in audit.methods]
        yield f"{label:<{first}}" + "".join(f"{f'{100 * a:.0f} / {100 * b:.0f}':>{width}}" for a, b in pairs)


def _cell(rate: Rate) -> str:
    low, high = rate.interval
    return f"{100 * rate.value:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _signed(more: Excess) -> str:
    return f"{100 * more.value:+.0f} [{100 * more.low:+.0f}, {100 * more.high:+.0f}]"


def _share(rate: Rate) -> str:
    """A share in whole percent, but never 0% of something nor 100% of not all."""
    if 0 < rate.value < 0.01:
        return f"{rate.value:.2%}"
    return f"{rate.value:.1%}" if 0.99 < rate.value < 1 else f"{rate.value:.0%}"


def _range(rate: Rate) -> str:
    low, high = rate.interval
    return f"{low:.0%} to {high:.0%}"
