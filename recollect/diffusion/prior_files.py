"""The files of a prior from a stranger, checked before diffusers opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.errors import InputError, is_number
from recollect.files.limits import PRIOR_SIDE
from recollect.model_folders import CONFIG, read_config

SCHEDULER = "scheduler_config.json"
MOST_TIME_STEPS = 100_000


def check_sizes(network: Path, scheduler: Path) -> None:
    """Refuse a prior whose numbers are beyond use."""
    if (scheduler / SCHEDULER).exists():
        _check_scheduler(scheduler / SCHEDULER)
    if (network / CONFIG).exists():
        _check_sides(network, read_config(network / CONFIG).get("sample_size"))


def _check_scheduler(file: Path) -> None:
    steps = read_config(file, infinite=True).get("num_train_timesteps", 1000)
    if is_number(steps) and steps > MOST_TIME_STEPS:
        raise InputError(f"{file} asks for {steps:,} time steps; a diffusion prior has about a thousand.")


def _check_sides(folder: Path, sizes: Any) -> None:
    if not isinstance(sizes, list):
        sizes = [sizes]
    for size in sizes:
        if isinstance(size, int | float):
            PRIOR_SIDE.check(int(size), f"The diffusion prior in {folder} takes images of {size:,} pixels a side.")
