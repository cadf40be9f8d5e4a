"""The files of a prior from a stranger, checked before diffusers opens them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from recollect.errors import InputError, is_number
from recollect.limits import PRIOR_SIDE
from recollect.model_folders import CONFIG, check_size, read_config

SCHEDULER = "scheduler_config.json"
MOST_TIME_STEPS = 100_000


def check_sizes(network: Path, scheduler: Path, kind: Any) -> None:
    """Refuse a prior whose network is far larger than its weights, or whose numbers are beyond use."""
    if (scheduler / SCHEDULER).exists():
        _check_scheduler(scheduler / SCHEDULER)
    if (network / CONFIG).exists():
        settings = read_config(network / CONFIG)
        _check_sides(network, settings.get("sample_size"))
        check_size(network, partial(kind.from_config, settings))


def _check_scheduler(file: Path) -> None:
    steps = read_config(file).get("num_train_timesteps", 1000)
    if is_number(steps) and steps > MOST_TIME_STEPS:
        raise InputError(f"{file} asks for {steps:,} time steps; a diffusion prior has about a thousand.")


def _check_sides(folder: Path, sizes: Any) -> None:
    if not isinstance(sizes, list):
        sizes = [sizes]
    for size in sizes:
        if isinstance(size, int | float):
            PRIOR_SIDE.check(int(size), f"The diffusion prior in {folder} takes images of {size:,} pixels a side.")
