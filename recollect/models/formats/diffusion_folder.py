"""Diffusion models: a folder that `recollect denoiser train` wrote, or one in diffusers' layout."""

from __future__ import annotations

from recollect.devices.precision import choose_device
from recollect.diffusion import Denoiser, is_diffusion_folder, open_denoiser
from recollect.models.formats.base import ModelFormat, ModelReference


def is_diffusion_model(model: ModelReference) -> bool:
    """Return whether a folder holds a diffusion model."""
    return is_diffusion_folder(model.path)


def open_diffusion_model(model: ModelReference) -> Denoiser:
    """Open a diffusion model as a denoiser; an audit fixes its noise level."""
    return open_denoiser(model.path, label=model.label, device=choose_device(model.device))


FORMAT = ModelFormat(
    name="diffusion",
    summary="a folder with a diffusion model, of recollect or in diffusers' layout",
    example="my-denoiser/",
    recognises=is_diffusion_model,
    open=open_diffusion_model,
    takes_label=True,
    order=5,
)
