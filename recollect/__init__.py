"""Recollect: measure how much of its training set can be recovered from an autoencoder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.degradation import Degradation, Erasure, Observation, mask, observe
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind, Iterate, KnownMask, Refined
from recollect.networks import FullyConnected, TiedTwoLayer, UNet
from recollect.recovery import Recovery, Stop
from recollect.scoring import Score, mask_agreement
from recollect.version import __version__

if TYPE_CHECKING:
    from recollect.auditing import audit
    from recollect.models import open_model
    from recollect.sources import load
    from recollect.training import train_to_loss

_LATER = {
    "audit": "recollect.auditing",
    "load": "recollect.sources",
    "open_model": "recollect.models",
    "train_to_loss": "recollect.training",
}


def __getattr__(name: str) -> Any:
    """Import what needs more than torch and numpy, or time, when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """List the public names; subpackages that happen to be imported are none."""
    return list(__all__)


__all__ = [
    "Blind",
    "Degradation",
    "Erasure",
    "FullyConnected",
    "Images",
    "InputError",
    "Iterate",
    "KnownMask",
    "Observation",
    "Recovery",
    "Refined",
    "Score",
    "Stop",
    "TiedTwoLayer",
    "UNet",
    "__version__",
    "audit",
    "load",
    "mask",
    "mask_agreement",
    "observe",
    "open_model",
    "train_to_loss",
]
