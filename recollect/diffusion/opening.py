"""Open a diffusion model: one of recollect's own, a folder in diffusers' layout, or a name on the Hugging Face hub."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.diffusion.card import Card
from recollect.diffusion.denoiser import Denoiser
from recollect.diffusion.kinds import Unusable, check_network, check_pipeline, image_shape, preconditioning_of
from recollect.diffusion.library import diffusers
from recollect.diffusion.own import FILE, open_own
from recollect.diffusion.prior_files import SCHEDULER, check_sizes
from recollect.errors import InputError, first_line, is_whole
from recollect.hub import fetch
from recollect.model_folders import (
    CONFIG,
    check_loaded,
    check_network_folder,
    check_plain,
    quiet,
    read_config,
    variant_of,
)
from recollect.names import printable

BUNDLED = Path(__file__).parent / "weights" / "cifar10-32"
INDEX = "model_index.json"  # of a pipeline: its parts and their classes


def bundled(device: torch.device | str = "cpu") -> Denoiser:
    """Open the prior that comes with recollect: 32x32 colour images, trained on 40,000 of CIFAR-10's images."""
    if not BUNDLED.is_dir():
        raise InputError(
            f"The prior that comes with recollect is missing from this installation ({BUNDLED}); install it again, or "
            "open a diffusion model of your own."
        )
    return open_denoiser(BUNDLED, device=device)


def open_denoiser(what: str | Path, *, label: int | None = None, device: torch.device | str = "cpu") -> Denoiser:
    """Open a diffusion model of images from a folder or a hub name; `label` is the class of a conditional one."""
    if not isinstance(what, (str, Path)):
        raise InputError(f"A diffusion model is opened from a folder or a hub name, not from a {type(what).__name__}.")
    if label is not None and not is_whole(label):
        raise InputError(f"label is the number of a class, 0 or more; got {label!r}.")
    folder = Path(what).expanduser()
    if not folder.is_dir():
        diffusers()  # a missing package is said before anything is fetched
        folder = fetch(what)
    name = "cifar10-32, recollect's own" if folder == BUNDLED else printable(str(what))
    try:
        denoiser = _open(folder, name, label)
    except Unusable as problem:
        raise InputError(f"The diffusion model in {folder} cannot be used: {problem}.") from None
    return denoiser.requires_grad_(False).eval().to(device)


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
    check_network_folder(_part(folder, "unet"))
    check_sizes(_part(folder, "unet"), _part(folder, "scheduler"), diffusers().UNet2DModel)
    preconditioning = preconditioning_of(scheduler, config)
    predict = partial(call_unet, label=label)
    return Denoiser(_load_network(folder), preconditioning, shape, name, Card.read(folder), predict)


def call_unet(network: Any, x: Tensor, time: Tensor, *, label: int | None = None) -> Tensor:
    """Call a UNet2DModel, with the same class for every image if it wants one."""
    labels = None if label is None else torch.full((len(x),), label, dtype=torch.long, device=x.device)
    return network(x, time, class_labels=labels, return_dict=False)[0]


def _checked_configs(folder: Path, label: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what the network and its schedule say of themselves; refuse other kinds before weights are read."""
    if (folder / INDEX).is_file():
        check_pipeline(read_config(folder / INDEX))
    config = read_config(_part(folder, "unet") / CONFIG)
    check_network(config, label)
    schedule = _part(folder, "scheduler") / SCHEDULER
    if not schedule.exists():
        raise Unusable("it has no noise schedule: save its scheduler into the same folder, with save_pretrained")
    return config, read_config(schedule)


def _part(folder: Path, part: str) -> Path:
    """Find where a part of a model lies: in a folder of its own name, or at the top, as in google/ddpm-cifar10-32."""
    return folder / part if (folder / part).is_dir() else folder


def _load_network(folder: Path) -> Any:
    """Load the network's weights in full precision."""
    part = _part(folder, "unet")
    try:
        with quiet("diffusers"):
            network, loaded = diffusers().UNet2DModel.from_pretrained(
                str(part), low_cpu_mem_usage=False, torch_dtype=torch.float32, output_loading_info=True,
                use_safetensors=True, local_files_only=True, variant=variant_of(part),
            )  # fmt: skip
    except Exception as error:  # a file that is missing or damaged is refused in a dozen ways
        reason = first_line(error).rstrip(".")
        raise InputError(f"The network of the diffusion model in {folder} cannot be opened: {reason}.") from None
    check_loaded(folder, network, loaded)
    return network
