"""All experiments, in the order in which they are worth computing."""

from __future__ import annotations

from recollect.errors import InputError
from recollect.paper.experiment import Experiment
from recollect.paper.experiments import (
    accurate,
    approximate,
    control,
    ddnm,
    mask_path,
    moderate_fc,
    moderate_unet,
    near_threshold,
    noise,
    psnr,
    recovery_path,
    theorem_1,
    thresholds,
)
from recollect.paper.experiments import losses_reached as training

_MODULES = (
    training, accurate, approximate, psnr, thresholds, control, moderate_fc, moderate_unet, noise,
    mask_path, recovery_path, near_threshold, ddnm, theorem_1,
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.id: module.EXPERIMENT for module in _MODULES}


def experiments_named(names: str) -> list[Experiment]:
    """Names with commas between them, or all."""
    asked = list(EXPERIMENTS) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    for unknown in (name for name in asked if name not in EXPERIMENTS):
        raise InputError(f"The paper has no experiment {unknown!r}; there are: {', '.join(EXPERIMENTS)}.")
    if not asked:
        raise InputError(f"Name at least one experiment: {', '.join(EXPERIMENTS)}.")
    return [EXPERIMENTS[name] for name in asked]
