"""Not in the paper: which train losses are reached, and how fast, by one recipe with no tuning by hand."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.plan import Fit
from recollect.paper.results import Results
from recollect.paper.scales import PERFECT, Scale
from recollect.paper.tables import markdown


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
    rows = []
    for facts in results.trainings():
        times = {m["wanted"]: f"{m['seconds']:.0f} s" for m in facts["milestones"]}
        goal = f"{facts['goal']['loss']:.0e} in {facts['goal']['seconds']:.0f} s"
        passed = [times.get(loss, "") for loss in PERFECT]
        rows.append([facts["training"], goal, *passed, f"{facts['loss']:.1e}", facts["provenance"]["device"]])
    titles = ["training", "goal", *(f"{loss:.0e}" for loss in PERFECT), "best", "trained on"]
    return f"Seconds to each train loss, {scale.name} scale:\n\n{markdown(titles, rows)}"


EXPERIMENT = Experiment(
    id="training",
    shows="seconds to each train loss, against the goal (at full scale on one H200)",
    where="not in the paper",
    trainings=fits,
    table=table,
)
