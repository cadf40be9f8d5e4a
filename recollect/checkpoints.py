"""Trained networks on disk: safetensors with everything needed to build the network again, written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.errors import InputError
from recollect.networks import NETWORKS, Network
from recollect.records import atomically

FORMAT = "recollect-checkpoint-1"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network and what is known about it: its settings, loss, steps, seed, data hash, precision, versions."""

    network: nn.Module
    about: Mapping[str, Any]


def save_checkpoint(path: str | Path, network: nn.Module, about: Mapping[str, Any]) -> None:
    """Write weights and metadata; a reader sees the whole file or none."""
    described = {"format": FORMAT, "network": describe_network(network), "about": json.dumps(dict(about))}
    write_tensors(path, network.state_dict(), described)


def load_checkpoint(path: str | Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Build the network again and load its weights; no code from the file is run."""
    tensors, metadata = read_tensors(path, device)
    about = _about(path, metadata)
    network = build_network(metadata["network"]).to(device)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"The weights in {path} do not fit the network it names: {error}") from None
    return Checkpoint(network, about)


def load_checkpoint_about(path: str | Path) -> dict[str, Any]:
    """What is known about a checkpoint, without its weights."""
    _, metadata = read_tensors(path, only_metadata=True)
    return _about(path, metadata)


def describe_network(network: nn.Module) -> str:
    """Return a network's class and settings as JSON."""
    if not isinstance(network, Network) or type(network) not in NETWORKS.values():
        known = ", ".join(kind.__name__ for kind in NETWORKS.values())
        raise InputError(f"Only {known} can be written as a checkpoint, not {type(network).__name__}.")
    return json.dumps(network.describe())


def build_network(description: str) -> nn.Module:
    """Build the network that a checkpoint describes; its class is one of the registered networks."""
    settings: dict[str, Any] = json.loads(description)
    name = settings.pop("class", None)
    matching = [kind for kind in NETWORKS.values() if kind.__name__ == name]
    if not matching:
        raise InputError(
            f"This checkpoint holds a network {name!r}, which recollect does not know here; "
            "install the package that registers it, or the version of recollect that wrote it."
        )
    try:
        return matching[0](**settings)
    except TypeError as error:
        raise InputError(f"This version of recollect cannot build the checkpoint's {name}: {error}") from None


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    from safetensors.torch import save

    with atomically(Path(path)) as file:
        file.write_bytes(save({k: t.detach().cpu().contiguous() for k, t in tensors.items()}, dict(metadata)))


def read_tensors(
    path: str | Path, device: torch.device | str = "cpu", *, only_metadata: bool = False
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors and the metadata, of one and the same version of a file that may be replaced meanwhile."""
    if not Path(path).is_file():
        raise InputError(f"There is no checkpoint {path}.")
    while True:
        before = _stamp(path)
        read = _read_tensors(path, str(device), only_metadata)
        if _stamp(path) == before:  # safetensors opens a file once for its header and again for its tensors
            return read


def _read_tensors(path: str | Path, device: str, only_metadata: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=device) as file:
            names = [] if only_metadata else list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from None


def _stamp(path: str | Path) -> tuple[int, int, int]:
    found = Path(path).stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _about(path: str | Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of one of our checkpoints, the network's settings included."""
    if metadata.get("format") != FORMAT:
        raise InputError(f"{path} is a safetensors file, but not one of recollect's checkpoints.")
    try:
        return {**json.loads(metadata["about"]), "network": dict(json.loads(metadata["network"]))}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is a checkpoint whose description is damaged.") from None
