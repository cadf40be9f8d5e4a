"""Recollect: measure how much of its training set can be recovered from an autoencoder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names
from recollect.version import __version__

if TYPE_CHECKING:
    from recollect.auditing import assert_not_memorized, audit
    from recollect.degradation import Degradation, Erasure, Observation, mask, observe
    from recollect.errors import InputError
    from recollect.images import Images
    from recollect.methods import Blind, Iterate, KnownMask, Refined
    from recollect.models import open_model
    from recollect.networks import FullyConnected, TiedTwoLayer, UNet
    from recollect.recovery import Recovery, Stop
    from recollect.scoring import Score, mask_agreement
    from recollect.sources import load
    from recollect.training import train_to_loss

# OpenMP reads this when torch is loaded. By default its threads spin at barriers: while another process has a core,
# each barrier then takes a time slice, and small convolutional networks were 20 times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__getattr__ = lazy_names(
    __name__,
    {
        "auditing": ["assert_not_memorized", "audit"],
        "degradation": ["Degradation", "Erasure", "Observation", "mask", "observe"],
        "errors": ["InputError"],
        "images": ["Images"],
        "methods": ["Blind", "Iterate", "KnownMask", "Refined"],
        "models": ["open_model"],
        "networks": ["FullyConnected", "TiedTwoLayer", "UNet"],
        "recovery": ["Recovery", "Stop"],
        "scoring": ["Score", "mask_agreement"],
        "sources": ["load"],
        "training": ["train_to_loss"],
    },
)


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
    "assert_not_memorized",
    "audit",
    "load",
    "mask",
    "mask_agreement",
    "observe",
    "open_model",
    "train_to_loss",
]
