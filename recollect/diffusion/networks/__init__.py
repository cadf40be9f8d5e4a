"""Recollect's own denoising networks: F(x, time), for images x in [-1, 1] that were scaled for the network."""

from recollect.diffusion.networks.base import (
    DENOISING_NETWORKS,
    DenoisingNetwork,
    build,
    check_settings,
    describe,
    network_for,
)
from recollect.diffusion.networks.residual import Residual
from recollect.diffusion.networks.unet import UNet

__all__ = [
    "DENOISING_NETWORKS",
    "DenoisingNetwork",
    "Residual",
    "UNet",
    "build",
    "check_settings",
    "describe",
    "network_for",
]
