"""The compact network of recollect's own priors, and its noise schedule; both are diffusers' classes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from recollect.errors import InputError

WIDTHS = (64, 112, 128)  # channels at full, half and quarter size: 5.9 million parameters, 12 MB in half precision
ATTENDED = 16  # the largest side with attention: at 32 it takes a third of the time
TIME_STEPS = 1000
DOWN_BLOCKS = {False: "DownBlock2D", True: "AttnDownBlock2D"}  # without and with attention
UP_BLOCKS = {False: "UpBlock2D", True: "AttnUpBlock2D"}
SCHEDULES = {"cosine": "squaredcos_cap_v2", "linear": "linear"}


def diffusers() -> Any:
    """Import the package when it is first used."""
    try:
        return import_module("diffusers")
    except ImportError as error:
        missing = getattr(error, "name", None) or "diffusers"
        raise InputError(
            f"A diffusion prior needs diffusers, and {missing} is not installed: pip install 'recollect[diffusion]'."
        ) from None


def can_open_priors() -> bool:
    """Whether diffusers is installed; it is not imported to find out."""
    return find_spec("diffusers") is not None


def make_network(channels: int, size: int, widths: tuple[int, ...] = WIDTHS, seed: int = 42) -> Any:
    """Build an unconditional UNet2DModel with attention below full size, where there are few pixels."""
    deep = len(widths) - 1
    if any(w % 16 for w in widths) or deep < 1:
        raise InputError(f"The widths are two or more multiples of 16, got {widths}.")
    if size % 2**deep:
        raise InputError(
            f"The images are {size}x{size}; with {len(widths)} widths their side must be divisible by {2**deep}."
        )
    attends = [level > 0 and size >> level <= ATTENDED for level in range(len(widths))]
    down_blocks = [DOWN_BLOCKS[attended] for attended in attends]
    up_blocks = [UP_BLOCKS[attended] for attended in reversed(attends)]
    with torch.random.fork_rng(devices=[]):  # diffusers draws its first weights from torch's own generator
        torch.default_generator.manual_seed(seed)
        return diffusers().UNet2DModel(
            sample_size=size, in_channels=channels, out_channels=channels, layers_per_block=2,
            block_out_channels=widths, time_embedding_dim=128, norm_num_groups=16, attention_head_dim=16,
            down_block_types=tuple(down_blocks), up_block_types=tuple(up_blocks),
        )  # fmt: skip


def make_scheduler(schedule: str) -> Any:
    """Build the noise schedule; the network predicts v, which is well scaled at every time step."""
    return diffusers().DDPMScheduler(
        num_train_timesteps=TIME_STEPS, beta_schedule=SCHEDULES[schedule], prediction_type="v_prediction"
    )
