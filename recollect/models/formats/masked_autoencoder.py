"""Masked autoencoders of transformers: a folder with config.json and safetensors, or a name on the hub."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from recollect.counting import with_article
from recollect.devices.precision import choose_device
from recollect.errors import InputError, first_line, is_number, is_whole
from recollect.model_folders import check_network_folder, check_size, files_of, load_safetensors, read_config
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.masked import MaskedAutoencoder

KIND = "ViTMAEForPreTraining"
SETTINGS = (  # those that decide the network; no other one is passed on, since some name code to be fetched and run
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act", "layer_norm_eps",
    "image_size", "patch_size", "num_channels", "qkv_bias", "decoder_num_attention_heads", "decoder_hidden_size",
    "decoder_num_hidden_layers", "decoder_intermediate_size", "mask_ratio", "norm_pix_loss",
)  # fmt: skip
PROCESSOR = "preprocessor_config.json"


class FolderMaskedAutoencoder(MaskedAutoencoder):
    """A ViTMAEForPreTraining with the normalization that its folder states."""

    def __init__(self, network: Any, shown: int, own_range: Mapping[str, Any]) -> None:
        super().__init__(network, network.vit.embeddings.patch_embeddings.num_patches, shown)
        self.own_range, self.__name__ = own_range, KIND


def open_masked(model: ModelReference) -> FolderMaskedAutoencoder:
    """Open a masked autoencoder, in float32 and eval mode."""
    folder = model.path
    _check_kind(folder, model.config)
    check_network_folder(folder)
    library = transformers()
    try:
        config = library.ViTMAEConfig(**{name: model.config[name] for name in SETTINGS if name in model.config})
    except Exception as error:  # transformers checks settings, in kinds of errors of its own
        raise InputError(f"The settings in {folder} are wrong: {first_line(error)}") from None
    shown = _shown_patches(folder, config)
    build = getattr(library, KIND)
    check_size(folder, partial(build, config))
    network = _load(folder, build, config).requires_grad_(False).eval()
    return FolderMaskedAutoencoder(network, shown, _own_range(folder)).to(choose_device(model.device))


def transformers() -> Any:
    """Import the package when it is first used."""
    try:
        return import_module("transformers")
    except ImportError:
        raise InputError(
            "A masked autoencoder in a folder needs transformers: pip install 'recollect[transformers]'."
        ) from None


def _check_kind(folder: Path, config: Mapping[str, Any]) -> None:
    kinds = config.get("architectures") or [config.get("model_type")]
    if KIND not in kinds:
        raise InputError(
            f"{folder} holds {with_article(str(kinds[0]))} of transformers; of these {KIND} opens, which has the "
            "decoder of a masked autoencoder."
        )
    if config.get("norm_pix_loss"):
        raise InputError(
            f"{folder} holds a masked autoencoder that predicts normalized patches (norm_pix_loss): the brightness and "
            "contrast of an erased patch are not in it, so an audit of pixels could not show what it memorized."
        )


def _shown_patches(folder: Path, config: Any) -> int:
    """Count the patches that the network is shown in training, as transformers does."""
    sizes = config.image_size, config.patch_size
    ratio = config.mask_ratio
    if not all(is_whole(size, 1) for size in sizes) or not is_number(ratio) or not math.isfinite(ratio):
        raise InputError(f"{folder} holds a masked autoencoder of other than square images and patches.")
    patches = (config.image_size // config.patch_size) ** 2
    shown = int(patches * (1 - config.mask_ratio))
    if not 0 < shown < patches:
        raise InputError(f"{folder} hides {config.mask_ratio:.0%} of {patches} patches: nothing is left to predict.")
    return shown


def _load(folder: Path, kind: Any, config: Any) -> Any:
    options = {"config": config, "dtype": torch.float32, "attn_implementation": "sdpa"}
    return load_safetensors(folder, "masked autoencoder", kind.from_pretrained, **options)


def _own_range(folder: Path) -> dict[str, Any]:
    """Read the normalization of images that the folder states, if it does."""
    if not (folder / PROCESSOR).exists():
        return {}
    processor = read_config(folder / PROCESSOR)
    mean, std = processor.get("image_mean"), processor.get("image_std")
    if not processor.get("do_normalize", True) or mean is None or std is None:
        return {}
    return {"mean": mean, "std": std}


FORMAT = ModelFormat(
    name="masked-autoencoder",
    summary="ViTMAEForPreTraining of transformers: a folder, or a name on the Hugging Face hub",
    example="my-mae/",
    recognises=lambda model: "model_type" in model.config or "architectures" in model.config,
    open=open_masked,
    files_beside=files_of,
    order=7,
)
