"""The package diffusers, which is imported when one of its models is opened."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from recollect.errors import InputError
from recollect.model_folders import CONFIG, check_network_folder, check_size, load_safetensors, read_config, variant_of


def diffusers() -> Any:
    """Import the package when it is first used."""
    try:
        return import_module("diffusers")
    except ImportError as error:
        missing = getattr(error, "name", None) or "diffusers"
        raise InputError(
            f"A diffusion model in diffusers' layout needs diffusers, and {missing} is not installed: "
            "pip install 'recollect[diffusion]'."
        ) from None


def can_open_priors() -> bool:
    """Whether diffusers is installed; it is not imported to find out."""
    return find_spec("diffusers") is not None


def load_network(folder: Path, kind: str) -> Any:
    """Load one network of the package from a stranger's folder, in full precision and from safetensors alone."""
    check_network_folder(folder)
    network_kind = getattr(diffusers(), kind)
    check_size(folder, partial(network_kind.from_config, read_config(folder / CONFIG)))
    options = {"low_cpu_mem_usage": False, "torch_dtype": torch.float32, "variant": variant_of(folder)}
    return load_safetensors(folder, kind, network_kind.from_pretrained, **options)
