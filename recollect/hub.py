"""Models on the Hugging Face hub, fetched by their names and then kept."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from recollect.errors import InputError

FILES = ["*.json", "*.npy", "*.safetensors"]  # what a model can consist of; a pickle would not be opened
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def is_hub_name(text: str) -> bool:
    """Say whether a text has the form of a name on the hub: google/ddpm-cifar10-32."""
    return bool(_NAME.fullmatch(text))


@lru_cache
def fetch(name: str | Path) -> Path:
    """Fetch what the hub has under a name; gives the folder where it is kept."""
    if isinstance(name, Path) or not is_hub_name(name):
        raise InputError(f"There is no folder {name} with a model in it.")
    try:
        from huggingface_hub import snapshot_download  # comes with diffusers and with transformers
    except ImportError:
        raise InputError(
            f"There is no file or folder {name}. To open a model of that name on the Hugging Face hub, run "
            "pip install 'recollect[diffusion]' or 'recollect[transformers]'."
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except Exception as error:  # no network, no such name, no permission: each its own kind
        raise InputError(
            f"There is no file or folder {name}, and no model of that name could be fetched from the Hugging Face hub "
            f"({type(error).__name__}); fetch it where there is a network, or give its folder."
        ) from None
