"""Opening a prior: one of recollect's own, a folder in diffusers' layout, or a name on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from recollect.errors import InputError
from recollect.priors.card import Card
from recollect.priors.network import diffusers
from recollect.priors.prior import Prior

BUNDLED = Path(__file__).parent / "weights" / "cifar10-32"


def bundled(device: torch.device | str = "cpu") -> Prior:
    """The prior that comes with recollect: 32x32 colour images, trained on 40,000 of CIFAR-10's training images."""
    return open_prior(BUNDLED, device=device)


def open_prior(what: str | Path, *, device: torch.device | str = "cpu") -> Prior:
    """An unconditional diffusers UNet2DModel with its noise schedule, from a folder or a hub name."""
    library = diffusers()
    folder = Path(what).expanduser()
    local = isinstance(what, Path) or folder.exists() or str(what).startswith((".", "/", "~"))
    if local and not folder.is_dir():
        raise InputError(f"There is no folder {folder} with a diffusion prior in it.")
    where = str(folder) if local else str(what)
    network = _load(library.UNet2DModel, where, "unet", local)
    scheduler = _load(library.DDPMScheduler, where, "scheduler", local)
    card = Card.read(folder) if local else None
    name = "cifar10-32, recollect's own" if folder == BUNDLED else str(what)
    return Prior(network.eval().requires_grad_(False), scheduler, name, card).to(device)


def _load(kind: Any, where: str, part: str, local: bool) -> Any:
    """A part of a prior: at the top of the folder, as in google/ddpm-cifar10-32, or in a folder of its own name."""
    options = {"low_cpu_mem_usage": False, "torch_dtype": torch.float32} if part == "unet" else {}
    for inside in ({}, {"subfolder": part}):
        try:
            return kind.from_pretrained(where, **inside, **options)
        except Exception as error:  # diffusers and the hub's client refuse in a dozen ways
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
    if local:
        raise InputError(f"{where} holds no diffusion prior that diffusers can open as {kind.__name__} ({reason}).")
    raise InputError(
        f"The prior {where} is not here and could not be fetched from the Hugging Face hub ({reason}); "
        "give a folder, or fetch it where there is a network."
    )
