"""The paper's main figure: accurate recovery against the train loss."""

from recollect.paper.experiment import Experiment
from recollect.paper.perfect_fit import cells

EXPERIMENT = Experiment(
    id="accurate",
    shows="accurate recovery rate (MSE < 1e-7) against the train loss, six masks",
    where="Figure 3 (hard_threshold)",
    cells=cells,
)
