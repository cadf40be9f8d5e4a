"""The same as `accurate`, with the looser threshold."""

from recollect.paper.experiment import Experiment
from recollect.paper.perfect_fit import cells

EXPERIMENT = Experiment(
    id="approximate",
    shows="approximate recovery rate (MSE < 5e-4) against the train loss, six masks",
    where="Appendix, figure `results`",
    cells=cells,
)
