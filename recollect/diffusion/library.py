"""The package diffusers, which is imported when one of its models is opened."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from recollect.errors import InputError


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
