"""Not in the paper: which train losses are reached, and how fast, by one recipe with no tuning by hand."""

from __future__ import annotations

from recollect.paper.experiment import Experiment
from recollect.paper.plan import Fit
from recollect.paper.scales import Scale


def fits(scale: Scale) -> list[Fit]:
    """The networks of the experiments, each with the optimizer that its kind is trained with by default."""
    return [
        *(scale.perfect("fc10", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("fc20", activation, "adam") for activation in ("lrelu", "prelu")),
        *(scale.perfect("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        *(scale.moderate("unet", activation, "muon") for activation in ("lrelu", "prelu", "softplus")),
        scale.moderate("fc20", "lrelu", "adam"),
    ]


EXPERIMENT = Experiment(
    id="training",
    shows="seconds to each train loss, against the goal for one H200",
    where="not in the paper",
    trainings=fits,
)
