"""An audit in sentences: one that a manager can read, and what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recollect.auditing.statistics import HandedOut, Returned, Statistics, rate_facts
from recollect.auditing.thresholds import EXACT, Threshold
from recollect.counting import counted, of_kind
from recollect.records import ANY_MASK
from recollect.scoring import ACCURATE, APPROXIMATE, Rate, Score, percent_range


@dataclass(frozen=True)
class Finding:
    """What any attack under any mask recovers, at the threshold that the model's fit supports."""

    threshold: Threshold
    methods: list[str]  # an image counts if one of these recovers it under one mask
    masks: int
    train: Rate
    control: Rate | None
    best: list[str]  # the strongest single method, and those that recover as many
    best_train: Rate
    exactly: Mapping[str, Rate]  # by set: the images that any attack recovers accurately
    returned: Mapping[str, Returned]  # by set: training images that resulted from other pictures, damaged
    handed_out: HandedOut  # what the gate counts: recovered, returned and generated images
    kind: str = "images"  # what is called images here: these, signals or rows

    def facts(self) -> dict[str, Any]:
        """Give plain values for audit.json."""
        return {
            "threshold": asdict(self.threshold),
            "methods": self.methods,
            "train": rate_facts(self.train),
            "control": rate_facts(self.control) if self.control else None,
            "best": {"method": self.best[0], "train": rate_facts(self.best_train)},
            "returned": {name: asdict(returned) for name, returned in self.returned.items()},
            "otherwise": self.otherwise,
            "handed_out": {**vars(self.handed_out), "rate": rate_facts(self.handed_out.rate)},
            "beside": self.beside,
        }

    @property
    def otherwise(self) -> list[str]:
        """Say which training images were obtained, though not from damaged copies of their own."""
        returned = self.returned.get("control")
        return [*_more_sentences(self.handed_out, self.kind), *_returned_sentence(returned, self.kind)]

    @property
    def beside(self) -> str:
        """Say what is counted, and which attacks are the strongest."""
        return of_kind(self._counted, self.kind)

    @property
    def _counted(self) -> str:
        exactly = "" if self.threshold == EXACT else f" {self._exactly}"
        under = f"under any of {self.masks} masks" if self.masks > 1 else "under one mask"
        if len(self.methods) == 1:
            return f"Counted: images recovered by {self.methods[0]} {under}, {self.threshold}.{exactly}"
        return (
            f"Counted: images recovered by any of {len(self.methods)} attacks ({', '.join(self.methods)}) {under}, "
            f"{self.threshold}. {self._strongest}{exactly}"
        )

    @property
    def _exactly(self) -> str:
        unseen = f", and {self.exactly['control'].of_total} unseen images" if "control" in self.exactly else ""
        return f"Accurately ({EXACT}): {self.exactly['train'].of_total}{unseen}."

    @property
    def _strongest(self) -> str:
        if len(self.best) == 1:
            return f"The best single attack is {self.best[0]}: {self.best_train.of_total}."
        return f"Each of {', '.join(self.best[:-1])} and {self.best[-1]} recovers {self.best_train.of_total}."


def find(statistics: Statistics, threshold: Threshold, kind: str = "images") -> Finding:
    """Count what any attack recovers of both sets, by the same rule."""
    rates = {name: statistics.any_attack(name).rate(threshold.mse) for name in statistics.sets}
    methods = statistics.counted or [statistics.main_method]
    alone = {name: statistics.rate("train", ANY_MASK, name, threshold.mse) for name in methods}
    best = alone[statistics.main_method]
    tied = [name for name in methods if name != statistics.main_method and alone[name].count == best.count]
    return Finding(
        threshold, methods, len(statistics.masks), rates["train"], rates.get("control"),
        best=[statistics.main_method, *tied],
        best_train=best,
        exactly={name: statistics.any_attack(name).rate(EXACT.mse) for name in statistics.sets},
        returned={name: statistics.returned(name, threshold.mse) for name in statistics.sets},
        handed_out=statistics.handed_out(threshold.mse),
        kind=kind,
    )  # fmt: skip


def headline(finding: Finding, *, sees_model: bool = True, subject: str = "", kind: str = "images") -> str:
    """Say how many training images attacks recover, and how many of the images that the model never saw.

    `sees_model` and `subject` are what the method says of itself where no attack was run. `kind` is what is called
    images here: these, signals or rows.
    """
    roughly, even = _approximately(finding)
    who, count = subject[:1].upper() + subject[1:], recovered_count(finding, kind)
    recovered = f"Attacks {roughly}recover {count} from this model{even}"
    if not sees_model:
        recovered = f"{who} {roughly}restores {count} without this model{even}"
    elif subject:
        recovered = f"{who} {roughly}recovers {count} from this model{even}"
    recovered += f" (95% interval {percent_range(*finding.train.interval)})."
    unseen = f"No unseen {kind} were given to compare with."
    if finding.control:
        unseen = f"Of {counted(finding.control.total, kind.removesuffix('s'))} it never saw: {finding.control.count}."
    return " ".join([recovered, unseen, *finding.otherwise])


def _approximately(finding: Finding) -> tuple[str, str]:
    """Write what stands before the verb, and at the end, where approximate recovery is counted."""
    if finding.threshold == EXACT:
        return "", ""
    return ("approximately ", "") if finding.train.count else ("", ", even approximately")


def recovered_count(finding: Finding, kind: str) -> str:
    """Write how many training images are recovered: 8 of 9 training images."""
    one = f"training {kind.removesuffix('s')}"
    return f"{finding.train.count} of {counted(finding.train.total, one)}"


def _more_sentences(handed_out: HandedOut, kind: str) -> Iterator[str]:
    """Say how many further training images were obtained, though not from damaged copies of their own."""
    more = f"more training {kind.removesuffix('s')}"
    if handed_out.only_returned:
        yield f"{counted(handed_out.only_returned, more)} resulted from damaged copies of other {kind}."
    if handed_out.only_generated:
        yield f"{counted(handed_out.only_generated, more)} appeared among samples of the model."


def _returned_sentence(returned: Returned | None, kind: str) -> Iterator[str]:
    """Say how many training images resulted from images that have nothing to do with them."""
    if returned and returned.different:
        unseen = counted(returned.images, f"unseen {kind.removesuffix('s')}")
        reached = counted(returned.different, f"training {kind.removesuffix('s')}")
        yield f"Attacks on {unseen} ended at {reached} instead."


def attribution(
    statistics: Statistics, prior: Mapping[str, Any] | None, without_model: Sequence[str], noise_std: float
) -> str | None:
    """Say what only the model recovers; None where no prior was tried.

    Priors restore hardly anything accurately, so an image that they restore approximately is not attributed.
    """
    if not prior or statistics.main_method in without_model:
        return None
    if noise_std:
        return "No attribution: generic restorations keep the noise of the kept pixels."
    own = statistics.any_attack("train").mse
    generic = Score.best_of([statistics.score("train", ANY_MASK, name) for name in without_model])
    restored = generic.mse < APPROXIMATE
    exactly, roughly = (int(((own < threshold) & ~restored).sum()) for threshold in (ACCURATE, APPROXIMATE))
    return (
        f"Attribution: attacks recover {roughly} of {len(own)} training images, {exactly} of them accurately, that "
        f"no generic method restores. {_without_model(prior)} {int(restored.sum())} approximately."
    )


def _without_model(prior: Mapping[str, Any]) -> str:
    generic, beside = f"A generic prior ({', '.join(prior['methods'])})", ", ".join(prior["beside"])
    if not beside:
        return f"{generic} that knows the masks restores"
    return f"{generic} and simple inpainting ({beside}), which know the masks, restore"


def membership_sentence(statistics: Statistics) -> str | None:
    """Say how well the error tells training from unseen images; None without unseen images."""
    attack = statistics.membership()
    if attack is None:
        return None
    sentence = (
        f"Membership, by the error of {statistics.main_method}: AUC {attack.auc:.3f} (95% interval "
        f"{attack.auc_low:.3f} to {attack.auc_high:.3f}; 0.5 is guessing)"
    )
    if attack.tpr_at_1_fpr is not None:
        sentence += f", and {attack.tpr_at_1_fpr:.0%} of the training images are found at 1% false positives"
    calibrated = statistics.calibrated_membership()
    if calibrated is not None:
        sentence += (
            f". Against unseen images of equal difficulty: AUC {calibrated.auc:.3f} ({calibrated.auc_low:.3f} to "
            f"{calibrated.auc_high:.3f})"
        )
    return f"{sentence}."
