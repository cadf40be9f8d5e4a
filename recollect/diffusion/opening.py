"""Open a diffusion model: recollect's own, a pipeline or folder of diffusers, or a name on the Hugging Face hub."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.devices.precision import weights_of
from recollect.diffusion.card import Card
from recollect.diffusion.config_values import Unusable
from recollect.diffusion.denoiser import Denoiser
from recollect.diffusion.kinds import (
    LATENT_PARTS,
    NETWORK,
    check_autoencoder,
    check_network,
    check_parts,
    check_pipeline,
    image_shape,
    preconditioning_of,
    used_parts,
)
from recollect.diffusion.latent import LatentDenoiser
from recollect.diffusion.library import diffusers, load_network
from recollect.diffusion.own import FILE, open_own
from recollect.diffusion.prior_files import SCHEDULER, check_sizes
from recollect.errors import InputError, is_whole
from recollect.files.names import printable
from recollect.hub import fetch
from recollect.model_folders import CONFIG, check_plain, read_config

BUNDLED = Path(__file__).parent / "weights" / "cifar10-32"
INDEX = "model_index.json"  # of a pipeline: its parts and their classes


def bundled(device: torch.device | str = "cpu") -> Denoiser:
    """Open the prior that comes with Recollect: 32x32 colour images, trained on 40,000 of CIFAR-10's images.

    Args:
        device: Where the prior runs.

    Returns:
        The denoiser.

    Examples:
        >>> from recollect.diffusion import bundled
        >>> bundled().shape
        (3, 32, 32)
    """
    if not BUNDLED.is_dir():
        raise InputError(
            f"The prior that comes with recollect is missing from this installation ({BUNDLED}); install it again, or "
            "open a diffusion model of your own."
        )
    return open_denoiser(BUNDLED, device=device)


def open_denoiser(what: Any, *, label: int | None = None, device: torch.device | str | None = None) -> Denoiser:
    """Open a diffusion model of images from a folder, a hub name or a pipeline of diffusers.

    Args:
        what: A folder that `recollect denoiser train` wrote, a folder in diffusers' layout, a name on the
            hub, or a pipeline of diffusers.
        label: The class of a class-conditional model.
        device: Where the model runs, by default a CPU. A pipeline stays where it is.

    Returns:
        The denoiser.

    Examples:
        >>> from recollect.diffusion import BUNDLED, open_denoiser
        >>> open_denoiser(BUNDLED).shape
        (3, 32, 32)
    """
    if label is not None and not is_whole(label):
        raise InputError(f"label is the number of a class, 0 or more; got {label!r}.")
    if is_pipeline(what):
        return _open_pipeline(what, label, device)
    if not isinstance(what, (str, Path)):
        raise InputError(
            f"A diffusion model is opened from a folder, a hub name or a pipeline of diffusers, not from a "
            f"{type(what).__name__}."
        )
    folder = Path(what).expanduser()
    if not folder.is_dir():
        diffusers()  # a missing package is said before anything is fetched
        folder = fetch(what)
    name = "cifar10-32, recollect's own" if folder == BUNDLED else printable(str(what))
    try:
        denoiser = _open(folder, name, label)
    except Unusable as problem:
        raise InputError(f"The diffusion model in {folder} cannot be used: {problem}.") from None
    return denoiser.requires_grad_(False).eval().to(device or "cpu")


def is_pipeline(what: Any) -> bool:
    """Whether an object is a pipeline of diffusers, or the network of one, which `open_denoiser` refuses."""
    return _is_of("diffusers.pipelines.pipeline_utils", "DiffusionPipeline", what) or _is_network(what)


def _is_network(what: Any) -> bool:
    """Whether an object is a pipeline's network alone, which says of images alone that an argument is missing."""
    return _is_of("diffusers.models.unets.unet_2d", "UNet2DModel", what)


def _is_of(module: str, kind: str, what: Any) -> bool:
    """Whether an object has a class of diffusers, whose module is then already imported."""
    imported = sys.modules.get(module)
    return imported is not None and isinstance(what, getattr(imported, kind))


def _open_pipeline(pipeline: Any, label: int | None, device: torch.device | str | None) -> Denoiser:
    """Take the network and the noise schedule of a pipeline; its modes and gradients stay as they are."""
    if _is_network(pipeline):
        raise InputError(
            f"A {type(pipeline).__name__} alone lacks its noise schedule: give a pipeline of both, such as "
            "diffusers.DDPMPipeline(unet, scheduler)."
        )
    try:
        denoiser = _from_pipeline(pipeline, label)
    except Unusable as problem:
        raise InputError(f"The {type(pipeline).__name__} cannot be used: {problem}.") from None
    return denoiser if device is None else denoiser.to(device)


def _from_pipeline(pipeline: Any, label: int | None) -> Denoiser:
    parts = used_parts(pipeline.config)
    check_parts(parts)
    network, scheduler = _part_of(pipeline, NETWORK), _part_of(pipeline, "scheduler")
    config = _config_of(network)
    check_network(config, label)
    shape, preconditioning = image_shape(config), preconditioning_of(_config_of(scheduler), config)
    coder = next((part for part in LATENT_PARTS if part in parts), None)
    for part in ("unet", coder):
        if part and any(w.dtype not in (torch.float32, torch.float64) for w in weights_of(getattr(pipeline, part))):
            raise Unusable(f"its weights are in half precision: take them in full, with pipeline.{part}.float()")
    name = printable(pipeline.name_or_path or type(pipeline).__name__)
    denoiser = Denoiser(network, preconditioning, shape, name, predict=partial(call_unet, label=label))
    if coder:
        check_autoencoder(type(getattr(pipeline, coder)).__name__)
        denoiser = LatentDenoiser(denoiser, getattr(pipeline, coder))
    denoiser.check()
    return denoiser


def _part_of(pipeline: Any, name: str) -> Any:
    """Take a part of a pipeline; one that is left out is None, or no attribute at all."""
    part = getattr(pipeline, name, None)
    if part is None:
        raise Unusable(f"it has no {name}: a denoiser needs a UNet2DModel (unet) and its noise schedule (scheduler)")
    return part


def _config_of(part: Any) -> dict[str, Any]:
    """Read the settings of a part; a part that is not of diffusers has none, and is then refused by its class."""
    config = getattr(part, "config", None)
    return {**(config if isinstance(config, Mapping) else {}), "_class_name": type(part).__name__}


def is_diffusion_folder(folder: Path) -> bool:
    """Whether a folder holds a diffusion model: one of recollect's own, or one in diffusers' layout."""
    signs = (FILE, INDEX, "unet", "scheduler", SCHEDULER)
    if not folder.is_dir():
        return False
    return any((folder / name).exists() for name in signs) or _holds_unet(folder)


def _holds_unet(folder: Path) -> bool:
    """Whether a folder holds the network of a diffusion model alone, without its noise schedule."""
    config = folder / CONFIG
    return config.exists() and str(read_config(config).get("_class_name")).startswith("UNet2D")


def _open(folder: Path, name: str, label: int | None) -> Denoiser:
    check_plain(folder, _part(folder, "unet"), _part(folder, "scheduler"))
    if (folder / FILE).is_file():
        if label is not None:
            raise Unusable(f"its network knows no classes: leave label={label!r} out")
        return open_own(folder, name)
    config, scheduler = _checked_configs(folder, label)
    shape = image_shape(config)
    check_sizes(_part(folder, "unet"), _part(folder, "scheduler"))
    preconditioning = preconditioning_of(scheduler, config)
    network = load_network(_part(folder, "unet"), "UNet2DModel")
    predict, card = partial(call_unet, label=label), Card.read(folder)
    denoiser = Denoiser(network, preconditioning, shape, name, card, predict)
    coder = _latent_part(folder)
    return denoiser if coder is None else LatentDenoiser(denoiser, _open_autoencoder(folder / coder))


def _latent_part(folder: Path) -> str | None:
    """Name the part whose latents a model denoises; None for a model of images."""
    index = folder / INDEX
    parts = used_parts(read_config(index)) if index.is_file() else {p.name for p in folder.iterdir() if p.is_dir()}
    return next((part for part in LATENT_PARTS if part in parts), None)


def _open_autoencoder(folder: Path) -> Any:
    """Load the autoencoder of a latent model."""
    kind = read_config(folder / CONFIG).get("_class_name")
    check_autoencoder(kind)
    return load_network(folder, str(kind))


def call_unet(network: Any, x: Tensor, time: Tensor, *, label: int | None = None) -> Tensor:
    """Call a UNet2DModel, with the same class for every image if it wants one."""
    labels = None if label is None else torch.full((len(x),), label, dtype=torch.long, device=x.device)
    return network(x, time, class_labels=labels, return_dict=False)[0]


def _checked_configs(folder: Path, label: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what the network and its schedule say of themselves; refuse other kinds before weights are read."""
    if (folder / INDEX).is_file():
        check_pipeline(read_config(folder / INDEX))
    unet = _part(folder, "unet") / CONFIG
    if not unet.exists() and any(folder.iterdir()):
        raise Unusable("it holds no UNet2DModel (config.json, at the top or in unet)")
    config = read_config(unet)
    check_network(config, label)
    schedule = _part(folder, "scheduler") / SCHEDULER
    if not schedule.exists():
        raise Unusable("it has no noise schedule: save its scheduler into the same folder, with save_pretrained")
    return config, read_config(schedule, infinite=True)


def _part(folder: Path, part: str) -> Path:
    """Find where a part of a model lies: in a folder of its own name, or at the top, as in google/ddpm-cifar10-32."""
    return folder / part if (folder / part).is_dir() else folder
