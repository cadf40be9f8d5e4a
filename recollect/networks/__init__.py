"""The networks of the paper. Recollect itself takes any callable from a batch to a batch of the same shape."""

from recollect.networks.base import (
    ACTIVATIONS,
    SHRINK,
    Network,
    PaperSettings,
    initialise,
    make_activation,
)
from recollect.networks.fully_connected import FullyConnected
from recollect.networks.tied_two_layer import TiedTwoLayer
from recollect.networks.unet import UNet
from recollect.registry import Registry

NETWORKS: Registry[type[Network]] = Registry("network", "recollect.networks", Network)

__all__ = [
    "ACTIVATIONS",
    "NETWORKS",
    "SHRINK",
    "FullyConnected",
    "Network",
    "PaperSettings",
    "TiedTwoLayer",
    "UNet",
    "initialise",
    "make_activation",
]
