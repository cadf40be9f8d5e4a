"""The files of a prior from a stranger, checked before diffusers opens them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from recollect.archives import check_safetensors, check_torch_archive
from recollect.devices.outline import outline_within
from recollect.errors import InputError, first_line, is_number
from recollect.limits import PRIOR_SIDE
from recollect.records import read_json

CONFIGS = ("config.json", "scheduler_config.json")
WEIGHTS = (".safetensors", ".bin")
MOST_TENSORS = 20_000
MOST_TIME_STEPS = 100_000
LONGEST_CONFIG = 2**20  # bytes


def check_plain(*folders: Path) -> None:
    """Refuse files that must not be read: pipes, and descriptions beyond their limit."""
    for file in {file for folder in folders for file in folder.iterdir()}:
        _check_file(file)


def check_sizes(network: Path, scheduler: Path, kind: Any) -> None:
    """Refuse a prior whose network is far larger than its weights, or whose numbers are beyond use."""
    for file in network.glob("*.bin"):
        check_torch_archive(file)
    if (scheduler / CONFIGS[1]).exists():
        _check_scheduler(scheduler / CONFIGS[1])
    if (network / CONFIGS[0]).exists():
        _check_network(network, kind)


def _check_file(file: Path) -> None:
    """Refuse a pipe, which would be waited for without end, and a file that is beyond its limit."""
    if file.is_dir():
        return
    if not file.is_file():
        raise InputError(f"{file} is no plain file; a diffusion prior consists of plain files.")
    if file.suffix == ".json" and file.stat().st_size > LONGEST_CONFIG:
        raise InputError(f"{file} has {file.stat().st_size:,} bytes; a description of a prior has a few thousand.")
    if file.suffix == ".safetensors":
        check_safetensors(file)


def _check_scheduler(file: Path) -> None:
    steps = _settings(file).get("num_train_timesteps", 1000)
    if is_number(steps) and steps > MOST_TIME_STEPS:
        raise InputError(f"{file} asks for {steps:,} time steps; a diffusion prior has about a thousand.")


def _check_network(folder: Path, kind: Any) -> None:
    settings = _settings(folder / CONFIGS[0])
    _check_sides(folder, settings.get("sample_size"))
    files = [file for file in folder.iterdir() if file.suffix in WEIGHTS]
    stored = sum(file.stat().st_size for file in files)  # a weight takes at least a byte
    try:
        outline = outline_within(MOST_TENSORS, stored, partial(kind.from_config, settings))
    except Exception as error:  # settings can be wrong in a dozen ways
        reason = first_line(error).rstrip(".")
        raise InputError(f"The unet of the diffusion prior in {folder} cannot be opened: {reason}.") from None
    if outline is None:
        raise InputError(f"The network of the diffusion prior in {folder} has far more weights than its files hold.")


def _check_sides(folder: Path, sizes: Any) -> None:
    if not isinstance(sizes, list):
        sizes = [sizes]
    for size in sizes:
        if isinstance(size, int | float):
            PRIOR_SIDE.check(int(size), f"The diffusion prior in {folder} takes images of {size:,} pixels a side.")


def _settings(file: Path) -> dict[str, Any]:
    settings = read_json(file)
    if not isinstance(settings, dict):
        raise InputError(f"{file} does not describe a part of a diffusion prior.")
    return settings
