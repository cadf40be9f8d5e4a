"""The compact network of recollect's own priors, and its noise schedule; both are diffusers' classes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from recollect.errors import InputError

WIDTHS = (64, 112, 128)  # channels at full, half and quarter size: 5.9 million parameters, 12 MB in half precision
ATTENDED = 16  # the largest side at which all pixels look at each other: at 32 that takes a third of the time
TIME_STEPS = 1000
SCHEDULES = {"cosine": "squaredcos_cap_v2", "linear": "linear"}


def diffusers() -> Any:
    """The package, imported when it is first used."""
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
    """An unconditional UNet2DModel with attention below full size, where there are few pixels."""
    deep = len(widths) - 1
    if any(w % 16 for w in widths) or deep < 1:
        raise InputError(f"The widths are two or more multiples of 16, got {widths}.")
    if size % 2**deep:
        raise InputError(
            f"The images are {size}x{size}; with {len(widths)} widths their side must be divisible by {2**deep}."
        )
    attends = [halved > 0 and size >> halved <= ATTENDED for halved in range(len(widths))]
    with torch.random.fork_rng(devices=[]):  # diffusers draws its first weights from torch's own generator
        torch.default_generator.manual_seed(seed)
        return diffusers().UNet2DModel(
            sample_size=size, in_channels=channels, out_channels=channels, layers_per_block=2,
            block_out_channels=widths, time_embedding_dim=128, norm_num_groups=16, attention_head_dim=16,
            down_block_types=tuple("AttnDownBlock2D" if here else "DownBlock2D" for here in attends),
            up_block_types=tuple("AttnUpBlock2D" if here else "UpBlock2D" for here in reversed(attends)),
        )  # fmt: skip


def make_scheduler(schedule: str) -> Any:
    """How noise is added in training; the network is taught v, which is well scaled at every time step."""
    return diffusers().DDPMScheduler(
        num_train_timesteps=TIME_STEPS, beta_schedule=SCHEDULES[schedule], prediction_type="v_prediction"
    )
