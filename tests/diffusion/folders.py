"""Small diffusion models in diffusers' layout, with random weights."""

import json
from pathlib import Path
from typing import Any

import torch

from recollect.diffusion.library import diffusers as library

SHAPE = (3, 8, 8)


def unet(seed: int = 0, **settings: Any) -> Any:
    """An unconditional network of two levels, unless the settings say otherwise."""
    usual: dict[str, Any] = {"sample_size": 8, "in_channels": 3, "out_channels": 3, "layers_per_block": 1}
    usual |= {"block_out_channels": (16, 16), "norm_num_groups": 8, "down_block_types": ("DownBlock2D",) * 2}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return library().UNet2DModel(**usual | {"up_block_types": ("UpBlock2D",) * 2} | settings).eval()


def write_folder(folder: Path, scheduler: Any, network: Any = None) -> Path:
    """Write a network and its schedule, each in a folder of its own."""
    (network or unet()).save_pretrained(folder / "unet")
    scheduler.save_pretrained(folder / "scheduler")
    return folder


def write_prior(folder: Path, schedule: str = "squaredcos_cap_v2") -> Path:
    """Write a network and its schedule side by side, as google/ddpm-cifar10-32 has them."""
    unet().save_pretrained(folder)
    return write_schedule(folder, schedule)


def write_schedule(folder: Path, schedule: str) -> Path:
    """Write a noise schedule; the network predicts v."""
    settings = {"beta_schedule": schedule, "prediction_type": "v_prediction"}
    library().DDPMScheduler(1000, **settings).save_pretrained(folder)
    return folder


def write_index(folder: Path, **parts: Any) -> Path:
    """Write the index of a pipeline that has these parts too."""
    index = {"_class_name": "Pipeline", "unet": ["diffusers", "UNet2DModel"], **parts}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder
