"""Opening a prior: one of recollect's own, a folder in diffusers' layout, or a name on the Hugging Face hub."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from recollect.diffusion.card import Card
from recollect.diffusion.network import diffusers
from recollect.diffusion.prior import Prior
from recollect.errors import InputError
from recollect.records import read_json

BUNDLED = Path(__file__).parent / "weights" / "cifar10-32"
SCHEDULERS = (  # whose betas mean the same
    "DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler",
    "DEISMultistepScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler",
)  # fmt: skip
FILES = ["*.json", "*.npy", "*.safetensors", "*.bin"]  # of a hub repository, what a prior can consist of


def bundled(device: torch.device | str = "cpu") -> Prior:
    """The prior that comes with recollect: 32x32 colour images, trained on 40,000 of CIFAR-10's training images."""
    if not BUNDLED.is_dir():
        raise InputError(
            f"The prior that comes with recollect is missing from this installation ({BUNDLED}); install it again, or "
            "open a prior of your own."
        )
    return open_prior(BUNDLED, device=device)


def open_prior(what: str | Path, *, device: torch.device | str = "cpu") -> Prior:
    """An unconditional diffusers UNet2DModel with its noise schedule, from a folder or a hub name."""
    if not isinstance(what, (str, Path)):
        raise InputError(f"A prior is opened from a folder or a hub name, not from a {type(what).__name__}.")
    library, folder = diffusers(), Path(what).expanduser()
    if not folder.is_dir():
        folder = _fetch(what)
    network, loaded = _load(
        library.UNet2DModel,
        folder,
        "unet",
        low_cpu_mem_usage=False,
        torch_dtype=torch.float32,
        output_loading_info=True,
        use_safetensors=None if any(_part(folder, "unet").glob("*.safetensors")) else False,  # it says so in vain
    )
    scheduler = _load(library.DDPMScheduler, folder, "scheduler")
    _check(folder, network, loaded["missing_keys"])
    name = "cifar10-32, recollect's own" if folder == BUNDLED else str(what)
    return Prior(network.requires_grad_(False), scheduler, name, Card.read(folder)).eval().to(device)


def _check(folder: Path, network: Any, missing: Sequence[str]) -> None:
    """Refuse what opens but would restore nonsense: another kind of network or schedule, weights that are not there."""
    kinds = [
        _config(folder, *where).get("_class_name") for where in (("unet", "config"), ("scheduler", "scheduler_config"))
    ]
    wrong = {
        f"its network is a {kinds[0]}, not a UNet2DModel": kinds[0] != "UNet2DModel",
        f"its schedule is of the kind {kinds[1]}, known are {', '.join(SCHEDULERS)}": kinds[1] not in SCHEDULERS,
        f"weights are missing ({', '.join(sorted(missing)[:3])})": bool(missing),
        "some of its weights are not finite": not all(bool(w.isfinite().all()) for w in network.parameters()),
    }
    for reason in (reason for reason, holds in wrong.items() if holds):
        raise InputError(f"The diffusion prior in {folder} cannot be used: {reason}.")


def _config(folder: Path, part: str, name: str) -> dict[str, Any]:
    return read_json(_part(folder, part) / f"{name}.json")


def _part(folder: Path, part: str) -> Path:
    """Where a part of a prior lies: in a folder of its own name, or at the top, as in google/ddpm-cifar10-32."""
    return folder / part if (folder / part).is_dir() else folder


def _fetch(name: str | Path) -> Path:
    """The folder with what the hub has under a name such as google/ddpm-cifar10-32; fetched once, then kept."""
    if isinstance(name, Path) or str(name).startswith((".", "/", "~")) or str(name).count("/") != 1:
        raise InputError(f"There is no folder {name} with a diffusion prior in it.")
    from huggingface_hub import snapshot_download  # comes with diffusers

    try:
        return Path(snapshot_download(str(name), allow_patterns=FILES))
    except Exception as error:  # no network, no such name, no permission: each its own kind
        raise InputError(
            f"There is no folder {name}, and no prior of that name could be fetched from the Hugging Face hub "
            f"({type(error).__name__}); fetch it where there is a network, or give its folder."
        ) from None


def _load(kind: Any, folder: Path, part: str, **options: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # diffusers calls the hub's client in ways that this finds old
            return kind.from_pretrained(str(_part(folder, part)), **options)
    except Exception as error:  # a file that is missing or damaged is refused in a dozen ways
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise InputError(f"The {part} of the diffusion prior in {folder} cannot be opened: {reason}.") from None
