"""The same as `accurate`, as the average PSNR of all recoveries."""

from recollect.paper.experiment import Experiment
from recollect.paper.perfect_fit import cells

EXPERIMENT = Experiment(
    id="psnr",
    shows="average PSNR of all recoveries against the train loss, six masks",
    where="Appendix, figure `psnr_threshold`",
    cells=cells,
)
