"""Recollect's own denoisers on disk: one safetensors file that describes its network, and a card beside it."""

from __future__ import annotations

from pathlib import Path

from recollect.checkpoints import read_tensors, write_tensors
from recollect.diffusion.card import Card
from recollect.diffusion.denoiser import Denoiser
from recollect.diffusion.networks import DenoisingNetwork, build, describe
from recollect.diffusion.preconditioning import EDM
from recollect.errors import InputError, last_line

FILE, FORMAT = "denoiser.safetensors", "recollect-denoiser-1"


def write_own(folder: Path, network: DenoisingNetwork) -> None:
    """Write a network's weights; a reader sees the whole file or none."""
    write_tensors(folder / FILE, network.state_dict(), {"format": FORMAT, "network": describe(network)})


def open_own(folder: Path, name: str) -> Denoiser:
    """Open a denoiser that recollect trained; no code from the file is run."""
    tensors, metadata = read_tensors(folder / FILE)
    if metadata.get("format") != FORMAT:
        raise InputError(f"{folder / FILE} is a safetensors file, but no denoiser of recollect.")
    network = build(metadata.get("network", ""))
    try:
        network.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise InputError(
            f"The weights in {folder / FILE} do not fit the network it describes: {last_line(error)}"
        ) from None
    denoiser = Denoiser(network, EDM(), network.shape, name, Card.read(folder)).float()
    denoiser.check()
    return denoiser
