"""Not in the paper: which train losses are reached, and how fast, by one recipe with no tuning by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recollect.paper.cells import Fit
from recollect.paper.experiment import Experiment
from recollect.paper.render.tables import markdown
from recollect.paper.scales import PERFECT, Scale
from recollect.paper.store import Results
from recollect.records import Record


def fits(scale: Scale) -> list[Fit]:
    """The networks of the experiments, each with the optimizer that its kind takes at full size."""
    return [
        *(scale.perfect("fc10", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("fc20", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        *(scale.moderate("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        scale.moderate("fc20", "lrelu", "muon"),
    ]


def table(scale: Scale, results: Results) -> str:
    """Every training that is recorded, with its goal: also those that other experiments asked for."""
    rows, trainings = [], results.trainings()
    for facts in trainings:
        times = {m["wanted"]: f"{m['seconds']:.0f} s" for m in facts["milestones"]}
        goal = f"{facts['goal']['loss']:.0e} in {facts['goal']['seconds']:.0f} s"
        passed = [times.get(loss, "") for loss in PERFECT]
        rows.append([facts["training"], goal, *passed, f"{facts['loss']:.1e}", facts["provenance"]["device"]])
    titles = ["training", "goal", *(f"{loss:.0e}" for loss in PERFECT), "best", "trained on"]
    by_loss = f"Seconds to each train loss, {scale.name} scale:\n\n{markdown(titles, rows)}"
    return f"{by_loss}\nWhat each part took:\n\n{_parts_table(trainings, results.records())}"


def _parts_table(trainings: Iterable[Mapping[str, Any]], records: Iterable[Record]) -> str:
    """Seconds of every training and of the cells measured on it, a machine a row."""
    trained = {(facts["training"], facts["provenance"]["device"]): facts["seconds"] for facts in trainings}
    measured: dict[tuple[str, str], list[float]] = {}
    for record in records:
        part = record.cell.get("training") or f"{record.cell['method']} on {record.cell['images']}"
        measured.setdefault((part, record.provenance["device"]), []).append(record.seconds)
    rows = [
        [*part, f"{trained[part]:.0f} s" if part in trained else "", str(len(cells)), f"{sum(cells):.0f} s"]
        for part in sorted({*trained, *measured})
        for cells in [measured.get(part, [])]
    ]
    totals = [
        ["all", place, f"{sum(s for (_, on), s in trained.items() if on == place):.0f} s", str(len(cells)),
         f"{sum(cells):.0f} s"]
        for place in sorted({place for _, place in (*trained, *measured)})
        for cells in [[s for (_, on), some in measured.items() if on == place for s in some]]
    ]  # fmt: skip
    return markdown(["part", "on", "training", "cells", "their seconds"], [*rows, *totals])


EXPERIMENT = Experiment(
    id="training",
    shows="seconds to each train loss, against the goal (at full scale on one H200)",
    where="not in the paper",
    trainings=fits,
    table=table,
)
