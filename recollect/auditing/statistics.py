"""Numbers over the records of an audit: rates over masks, excess, membership, and the tables of audit.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from recollect.auditing.calibration import calibrated_scores
from recollect.auditing.membership import Membership, membership
from recollect.auditing.outcomes import Nearest, outcomes
from recollect.errors import InputError
from recollect.records import ALL_MASKS, ANY_MASK, Record
from recollect.scoring import ACCURATE, APPROXIMATE, Excess, Rate, Score, excess, wilson

OVERALL = (ALL_MASKS, ANY_MASK)
THRESHOLDS = {"accurate": ACCURATE, "approximate": APPROXIMATE}
TABLES = ("summary", "overall", "excess", "membership", "costs")
MEASURE_OF_DIFFICULTY = "Biharmonic"  # the kind of the method whose errors say how hard an image is to restore

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Statistics:
    """Rates, excess and membership over the records of one audit."""

    records: list[Record]
    main_method: str  # the strongest single attack
    counted: list[str] = field(default_factory=list, kw_only=True)  # the methods of which the headline counts any
    generated: Mapping[str, float] = field(default_factory=dict, kw_only=True)  # smallest MSE of a sample, by image

    @property
    def sets(self) -> list[str]:
        return self._names("set")

    @property
    def masks(self) -> list[str]:
        """Name the masks of the audit."""
        return self._names("mask")

    @property
    def methods(self) -> list[str]:
        """Name the methods of the audit."""
        return self._names("method")

    @property
    def has_control(self) -> bool:
        return "control" in self.sets

    def record(self, set_name: str, mask: str, method: str) -> Record:
        """Find the record of one cell."""
        wanted = {"set": set_name, "mask": mask, "method": method}
        for record in self.records:
            if all(record.cell[name] == value for name, value in wanted.items()):
                return record
        raise InputError(
            f"This audit has no cell {set_name}, {mask}, {method}; it has the sets {', '.join(self.sets)}, the masks "
            f"{', '.join(self.masks)} and the methods {', '.join(self.methods)}."
        )

    def score(self, set_name: str, mask: str, method: str) -> Score:
        """Get the errors under a mask; under "any mask" each image's smallest."""
        if mask == ANY_MASK:
            return Score.best_of(self._scores(set_name, method))
        return self.record(set_name, mask, method).score

    def any_attack(self, set_name: str) -> Score:
        """Get each image's smallest error over all masks and all methods that the headline counts."""
        return Score.best_of([self.score(set_name, ANY_MASK, method) for method in self.counted or [self.main_method]])

    def returned(self, set_name: str, threshold: float) -> Returned:
        """Get the training images that any attack ended on from damaged images of other pictures."""
        records = self._counted_records(set_name)
        ended: set[str] = set()
        returned: set[str] = set()
        for record in records:
            others = ended_on_others(record, threshold)
            ended.update(others)
            returned.update(others.values())
        return Returned(images=len(records[0].ids), ended=len(ended), different=len(returned))

    def handed_out(self, threshold: float) -> HandedOut:
        """Count training images that any attack recovers, or ends on from other pictures, or that are generated."""
        ids = self._counted_records("train")[0].ids
        below = (self.any_attack("train").mse < threshold).tolist()
        recovered = {name for name, hit in zip(ids, below, strict=True) if hit}
        returned: set[str] = set()
        for set_name in self.sets:
            for record in self._counted_records(set_name):
                returned.update(ended_on_others(record, threshold).values())
        only_returned = returned.intersection(ids) - recovered
        generated = {name for name, error in self.generated.items() if error < threshold}
        only_generated = generated.intersection(ids) - recovered - only_returned
        count = len(recovered) + len(only_returned) + len(only_generated)
        return HandedOut(Rate(count, len(ids)), len(only_returned), len(only_generated))

    def _counted_records(self, set_name: str) -> list[Record]:
        counted = self.counted or [self.main_method]
        return [r for r in self.records if r.cell["set"] == set_name and r.cell["method"] in counted]

    def rate(self, set_name: str, mask: str, method: str, threshold: float = ACCURATE) -> Rate:
        """Get the share of images with an error below a threshold.

        Args:
            set_name: `train` or `control`.
            mask: One of `masks`. "any mask" counts an image once, "all masks" counts every try.
            method: One of `methods`.
            threshold: The error (MSE) below which an image counts.

        Returns:
            The rate, with its 95% interval.
        """
        if mask == ALL_MASKS:
            return pooled(self._scores(set_name, method), threshold)
        return self.score(set_name, mask, method).rate(threshold)

    def excess(self, method: str | None = None, threshold: float = ACCURATE, mask: str = ANY_MASK) -> Excess | None:
        """Get how far the training rate is above the control rate.

        Args:
            method: One of `methods`. Defaults to the strongest attack.
            threshold: The error (MSE) below which an image counts.
            mask: As for `rate`.

        Returns:
            The difference with its 95% interval; None without a control set.
        """
        if not self.has_control:
            return None
        train, control = (self.rate(s, mask, method or self.main_method, threshold) for s in ("train", "control"))
        return excess(train, control)

    def membership(self, method: str | None = None, mask: str = ANY_MASK) -> Membership | None:
        """Get how well the recovery error tells training from control images; None without a control set."""
        if not self.has_control:
            return None
        errors = (self.score(s, mask, method or self.main_method).mse.tolist() for s in ("train", "control"))
        return membership(*errors)

    def calibrated_membership(self, method: str | None = None, mask: str = ANY_MASK) -> Membership | None:
        """Get the same against unseen images of equal difficulty; None where biharmonic inpainting was not run."""
        measure = next((r.cell["method"] for r in self.records if _measures_difficulty(r)), None)
        if measure is None or not self.has_control:
            return None
        errors = (self.score(s, mask, method or self.main_method).mse for s in ("train", "control"))
        difficulty = (self.score(s, mask, measure).mse for s in ("train", "control"))
        scores = calibrated_scores(*errors, *difficulty)
        return None if scores is None else membership(*scores)

    def _names(self, part: str) -> list[str]:
        return list(dict.fromkeys(record.cell[part] for record in self.records))

    def _scores(self, set_name: str, method: str) -> list[Score]:
        return [self.record(set_name, mask, method).score for mask in self.masks]


@dataclass(frozen=True)
class Returned:
    """Training images that resulted from damaged images of other pictures."""

    images: int  # damaged images in the set
    ended: int  # of which a recovery ended on another training image
    different: int  # training images on which these ended


@dataclass(frozen=True)
class HandedOut:
    """The share of the training images that attacks obtain from any damaged image, or the model generates."""

    rate: Rate
    only_returned: int  # of these, images that no damaged copy of their own led to
    only_generated: int  # of these, images that are among the generated ones alone


@dataclass(frozen=True)
class PooledRate(Rate):
    """A share of all tries, with a Wilson interval of the number of independent tries that they are worth."""

    independent: float

    @property
    def interval(self) -> tuple[float, float]:
        # Wilson's formula does not need whole numbers.
        return wilson(self.count / self.total * self.independent, self.independent)  # type: ignore[arg-type]


def pooled(scores: Sequence[Score], threshold: float) -> PooledRate:
    """Pool all images under all masks in one rate; images are independent of each other, masks of one image are not."""
    hits = np.stack([score.mse < threshold for score in scores])  # masks x images
    masks, images = hits.shape
    share = float(hits.mean())
    variance = float(hits.mean(0).var(ddof=1)) / images if images > 1 else 0.0  # of the mean, from image to image
    independent = share * (1 - share) / variance if variance > 0 else float(images)
    return PooledRate(int(hits.sum()), masks * images, min(max(independent, float(images)), float(masks * images)))


def rate_facts(rate: Rate) -> Row:
    """Write a rate as it stands in audit.json."""
    low, high = rate.interval
    return {"count": rate.count, "total": rate.total, "value": rate.value, "low": low, "high": high}


def image_columns(record: Record) -> dict[str, list[Any]]:
    """List a cell as columns, one row per image."""
    count, score = len(record.ids), record.score
    unknown: list[Any] = [None] * count
    return {
        **{name: [value] * count for name, value in record.cell.items()},
        "image": list(record.ids),
        "mse": score.mse.tolist(),
        "psnr": score.psnr.tolist(),
        "accurate": (score.mse < ACCURATE).tolist(),
        "approximate": (score.mse < APPROXIMATE).tolist(),
        "outcome": _outcomes(record, APPROXIMATE),
        "nearest": list(record.nearest or unknown),
        "nearest_mse": list(record.nearest_mse or unknown),
        "rounds": list(record.rounds),
        "steps": list(record.steps),
        "stop": list(record.stop),
        "mask_accuracy": list(record.mask_accuracy or unknown),
        "mask_iou": list(record.mask_iou or unknown),
    }


def found_among_samples(facts: Mapping[str, Any]) -> dict[str, float]:
    """Get the training images that are among the generated ones, each with the smallest error of a sample."""
    return dict((facts.get("generated") or {}).get("found", {}))


def ended_on_others(record: Record, threshold: float) -> dict[str, str]:
    """Get the images whose recovery ended on another training image, each with that image."""
    ends = zip(record.ids, _outcomes(record, threshold), record.nearest or [], strict=False)
    return {name: str(other) for name, outcome, other in ends if outcome == "another training image"}


def returned_positions(records: Sequence[Record], threshold: float) -> list[int]:
    """Get the positions of the training images that recoveries of other pictures ended on."""
    positions: set[int] = set()
    for record in records:
        ends = zip(_outcomes(record, threshold), record.nearest_index or [], strict=False)
        positions |= {where for outcome, where in ends if outcome == "another training image" and where is not None}
    return sorted(positions)


def _outcomes(record: Record, threshold: float) -> list[Any]:
    """Say how each recovery ended; None in records that do not name the nearest training images."""
    if record.nearest is None or record.nearest_mse is None:
        return [None] * len(record.ids)
    nearest, training = Nearest(record.nearest, record.nearest_mse), record.cell["set"] == "train"
    return list(outcomes(record.ids, record.score.mse.tolist(), nearest, threshold, training=training))


def _other_training_images(record: Record) -> Row | None:
    """Count recoveries that ended on another training image, approximately, and on how many different ones."""
    if record.nearest is None:
        return None
    others = ended_on_others(record, APPROXIMATE)
    return {"recoveries": len(others), "different": len(set(others.values()))}


def tables(statistics: Statistics) -> dict[str, list[Row]]:
    """Compute the tables of audit.json."""
    made = (overall_rows, excess_rows, membership_rows, cost_rows)
    rows = [summary_rows(statistics.records), *(make(statistics) for make in made)]
    return {name: list(table) for name, table in zip(TABLES, rows, strict=True)}


def summary_rows(records: Sequence[Record]) -> Iterator[Row]:
    """Give one row a cell: its rates and means."""
    for record in records:
        score = record.score
        finite = score.psnr[np.isfinite(score.psnr)]
        yield {
            **record.cell,
            "images": len(record.ids),
            "accurate": rate_facts(score.accurate),
            "approximate": rate_facts(score.approximate),
            "other_training_images": _other_training_images(record),
            "mean_psnr": float(finite.mean()) if len(finite) else None,
            "mask_accuracy": _mean(record.mask_accuracy),
            "mask_iou": _mean(record.mask_iou),
            "seconds": record.seconds,
        }


def overall_rows(statistics: Statistics) -> Iterator[Row]:
    """Give the rates over all masks: the share of all tries, and of images that at least one mask recovered."""
    for method in statistics.methods:
        for set_name in statistics.sets:
            for over in OVERALL:
                row: Row = {"set": set_name, "method": method, "over": over}
                for name, threshold in THRESHOLDS.items():
                    row[name] = rate_facts(statistics.rate(set_name, over, method, threshold))
                yield row


def excess_rows(statistics: Statistics) -> Iterator[Row]:
    """Give the excess of train over control, for each mask and overall."""
    if not statistics.has_control:
        return
    for method in statistics.methods:
        for mask in [*statistics.masks, *OVERALL]:
            above = {name: statistics.excess(method, threshold, mask) for name, threshold in THRESHOLDS.items()}
            yield {"mask": mask, "method": method, **{name: asdict(e) for name, e in above.items() if e}}


def membership_rows(statistics: Statistics) -> Iterator[Row]:
    """Give how well the error tells training from control images; "any mask" takes an image's smallest error."""
    for method in statistics.methods:
        for mask in [*statistics.masks, ANY_MASK]:
            attack = statistics.membership(method, mask)
            if attack is not None:
                calibrated = statistics.calibrated_membership(method, mask)
                beside = {"calibrated": asdict(calibrated) if calibrated else None}
                yield {"mask": mask, "method": method, **asdict(attack), **beside}


def cost_rows(statistics: Statistics) -> Iterator[Row]:
    """Count the network evaluations of each method on training images: for an image and mask, and for each recovered.

    A method that never calls the model has no row.
    """
    for method in statistics.methods:
        steps = [record.steps for record in statistics.records if _is_of(record, "train", method)]
        evaluations, tries = sum(map(sum, steps)), sum(map(len, steps))
        recovered = statistics.rate("train", ANY_MASK, method, APPROXIMATE).count
        if evaluations:
            yield {
                "method": method,
                "evaluations": evaluations,
                "evaluations_a_try": evaluations / tries,
                "recovered": recovered,
                "evaluations_each": evaluations / recovered if recovered else None,
            }


def _is_of(record: Record, set_name: str, method: str) -> bool:
    return (record.cell["set"], record.cell["method"]) == (set_name, method)


def _measures_difficulty(record: Record) -> bool:
    return bool(record.settings.get("method", {}).get("kind") == MEASURE_OF_DIFFICULTY)


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
