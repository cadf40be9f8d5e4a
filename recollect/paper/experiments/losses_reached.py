"""Not in the paper: which train losses are reached, and how fast, with one recipe and no tuning by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from recollect.paper.cells import Fit
from recollect.paper.experiment import BEYOND, Experiment
from recollect.paper.render.tables import markdown
from recollect.paper.scales import PERFECT, Scale
from recollect.paper.store import Store, version_of
from recollect.records import Record

SAME = " (\\*: the same weights as at the loss before, for one window of steps passed both)"
Part = tuple[str, str]  # a training, or the generic method on a set of images; and the device


def fits(scale: Scale) -> list[Fit]:
    """List the networks of the experiments, each with its usual optimizer at full scale."""
    return [
        *(scale.perfect("fc10", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("fc20", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        *(scale.moderate("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        scale.moderate("fc20", "lrelu", "muon"),
    ]


def table(scale: Scale, store: Store) -> str:
    """Make the tables of every recorded training, also of those that other experiments need."""
    rows, trainings = [], store.trainings()
    for facts in trainings:
        seconds = _seconds_to(facts["milestones"])
        goal = f"{facts['goal']['loss']:.0e} in {facts['goal']['seconds']:.0f} s"
        passed = [seconds.get(loss, "") for loss in PERFECT]
        origin = facts["provenance"]
        rows.append([
            facts["training"], goal, *passed, f"{facts['loss']:.1e}", origin["device"], version_of(origin),
        ])  # fmt: skip
    titles = ["training", "goal", *(f"{loss:.0e}" for loss in PERFECT), "best", "trained on", "recollect"]
    by_loss = f"Seconds to each train loss, {scale.name} scale{SAME}:\n\n{markdown(titles, rows)}"
    return f"{by_loss}\nSeconds of each part:\n\n{_parts_table(trainings, store.records())}"


def _seconds_to(milestones: Iterable[Mapping[str, Any]]) -> dict[float, str]:
    """Write the seconds to each loss; one window of steps can pass several, which then have the same weights."""
    seconds: dict[float, str] = {}
    before = None
    for milestone in milestones:
        weights = milestone["steps"], milestone["loss"]
        seconds[milestone["wanted"]] = f"{milestone['seconds']:.0f} s{' *' if weights == before else ''}"
        before = weights
    return seconds


def _parts_table(trainings: Iterable[Mapping[str, Any]], records: Iterable[Record]) -> str:
    """Add up the seconds of every training and of the cells measured with it, and of each device."""
    training_seconds: dict[Part, float] = {}
    for facts in trainings:
        training_seconds[facts["training"], facts["provenance"]["device"]] = facts["seconds"]
    cell_seconds = _seconds_of_cells(records)
    parts = sorted({*training_seconds, *cell_seconds})
    rows, totals = [], []
    for part in parts:
        training = f"{training_seconds[part]:.0f} s" if part in training_seconds else ""
        rows.append([*part, training, *_count_and_sum(cell_seconds.get(part, []))])
    for device in sorted({device for _, device in parts}):
        own = [part for part in parts if part[1] == device]
        training = f"{sum(training_seconds.get(part, 0.0) for part in own):.0f} s"
        cells = list(chain.from_iterable(cell_seconds.get(part, []) for part in own))
        totals.append(["all", device, training, *_count_and_sum(cells)])
    return markdown(["part", "on", "training", "cells", "their seconds"], rows + totals)


def _seconds_of_cells(records: Iterable[Record]) -> dict[Part, list[float]]:
    seconds: dict[Part, list[float]] = {}
    for record in records:
        name = record.cell.get("training") or f"{record.cell['method']} on {record.cell['images']}"
        seconds.setdefault((name, record.provenance["device"]), []).append(record.seconds)
    return seconds


def _count_and_sum(seconds: Sequence[float]) -> list[str]:
    return [str(len(seconds)), f"{sum(seconds):.0f} s"]


EXPERIMENT = Experiment(
    name="training",
    summary="seconds to each train loss, against the goal (at full scale on one H200)",
    location=BEYOND,
    trainings=fits,
    table=table,
    order=1,
)
