"""Autoencoders in diffusers' layout: a folder with config.json and safetensors, or a name on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from recollect.counting import with_article
from recollect.devices.precision import choose_device
from recollect.diffusion.library import load_network
from recollect.errors import InputError
from recollect.model_folders import files_of
from recollect.models.formats.base import ModelFormat, ModelReference


def _whole(network: Any, values: Tensor) -> Tensor:
    return network(values).sample


def _without_rounding(network: Any, values: Tensor) -> Tensor:
    """Encode and decode, as pipelines do; AutoencoderTiny's own forward also rounds its latents to bytes."""
    return network.decode(network.encode(values).latents).sample


RECONSTRUCTIONS: Mapping[str, Callable[[Any, Tensor], Tensor]] = {
    "AutoencoderKL": _whole,
    "VQModel": _whole,
    "AutoencoderTiny": _without_rounding,
    "AsymmetricAutoencoderKL": _whole,
}


class FolderAutoencoder(nn.Module):
    """An autoencoder of diffusers: images in [-1, 1] to images. A variational one takes the mode of its posterior."""

    own_range: Mapping[str, str] = {"input_range": "-1,1"}

    def __init__(self, network: nn.Module, kind: str) -> None:
        super().__init__()
        self.network, self.__name__ = network, kind

    def forward(self, values: Tensor) -> Tensor:
        return RECONSTRUCTIONS[self.__name__](self.network, values)


def open_folder(model: ModelReference) -> FolderAutoencoder:
    """Open an autoencoder, in float32 and eval mode."""
    folder, kind = model.path, str(model.config.get("_class_name"))
    if kind not in RECONSTRUCTIONS:
        raise InputError(
            f"{folder} holds {with_article(kind)}; autoencoders of diffusers that open are "
            f"{', '.join(RECONSTRUCTIONS)}."
        )
    network = load_network(folder, kind).requires_grad_(False).eval().to(choose_device(model.device))
    return FolderAutoencoder(network, kind)


def is_folder(model: ModelReference) -> bool:
    """Return whether a folder holds one network of diffusers."""
    return "_class_name" in model.config


FORMAT = ModelFormat(
    name="autoencoder-folder",
    summary="AutoencoderKL, VQModel, AutoencoderTiny, AsymmetricAutoencoderKL of diffusers: a folder, or a name on the "
    "Hugging Face hub",
    example="my-vae/",
    recognises=is_folder,
    open=open_folder,
    files_beside=files_of,
    order=6,
)
