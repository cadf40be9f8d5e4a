"""Recollect: how much of its training set can be read back out of an autoencoder?"""

from recollect.autoencoders import FullyConnected, TiedTwoLayer, UNet
from recollect.degradation import Degradation, Erasure, Observation, mask, observe
from recollect.errors import InputError
from recollect.images import Images
from recollect.recovery import Blind, Iterate, KnownMask, Recovery, Stop
from recollect.scoring import Score, mask_agreement

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
    "Score",
    "Stop",
    "TiedTwoLayer",
    "UNet",
    "mask",
    "mask_agreement",
    "observe",
]
