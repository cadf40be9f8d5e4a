"""Import beforehand what children need, so that a forked one begins at once."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import torch

import recollect

HEAVY = (
    "diffusers.models.unets.unet_2d", "diffusers.schedulers.scheduling_ddpm", "matplotlib.backends.backend_svg",
    "matplotlib.pyplot", "onnxruntime", "pandas", "PIL.Image", "scipy.io", "scipy.io.matlab", "skimage.restoration",
    "torch.export", "torch._export.serde.serialize", "torch.utils._sympy.functions", "rich.progress", "safetensors",
    "safetensors.torch", "typer._adapters", "torch.export.pt2_archive._package", "torch._inductor.cpp_builder",
)  # fmt: skip
NEEDS_A_GPU = "recollect.accelerate.tf32x3"


def import_everything() -> None:
    """Import all of recollect and the libraries that it imports when used; start no thread."""
    torch.set_num_threads(1)
    names = [module.name for module in pkgutil.walk_packages(recollect.__path__, "recollect.")]
    own = [name for name in names if not name.startswith(NEEDS_A_GPU) and not name.endswith("__main__")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*own, *HEAVY):
            try:
                importlib.import_module(name)
            except ImportError:  # an optional library, or one of another version
                continue
