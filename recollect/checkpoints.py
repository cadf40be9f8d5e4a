"""Trained networks on disk: safetensors with everything needed to build the network again, written atomically."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.devices.outline import outline_within
from recollect.errors import InputError, is_number
from recollect.files.archives import check_safetensors
from recollect.networks import NETWORKS, Network
from recollect.records import atomically

FORMAT = "recollect-checkpoint-1"
CHECKSUM = "checksum"  # its name in the metadata
LARGEST_SETTING = 10**7  # of a network: a list of so many layers still fits in memory


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
    _check_fits(path, about["network"], tensors)
    network = build_network(about["network"]).to(device)
    network.load_state_dict(tensors)
    return Checkpoint(network, about)


def _check_fits(path: str | Path, description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of the network, before the network itself takes memory."""
    outline = _outline(description, tensors)
    if outline is None:
        raise InputError(f"The weights in {path} do not fit the network it names, which has far more weights.")
    wrong = _differing(outline.state_dict(), tensors)
    if wrong:
        raise InputError(f"The weights in {path} do not fit the network it names: {', '.join(wrong[:4])}.")


def _differing(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> list[str]:
    """Name the tensors that one side lacks, or whose shapes differ."""
    shapes = [{name: tensor.shape for name, tensor in side.items()} for side in (expected, tensors)]
    return sorted({name for name, _ in shapes[0].items() ^ shapes[1].items()})


def _outline(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module | None:
    """Build the outline of a network; None if it has far more weights than these tensors."""
    settings = {name: value for name, value in description.items() if name != "seed"}
    if _largest(settings) > LARGEST_SETTING:
        return None
    elements = sum(tensor.numel() for tensor in tensors.values())
    return outline_within(len(tensors), elements, partial(build_network, description))


def _largest(settings: Any) -> float:
    """Find the largest number among settings, which may be nested."""
    if isinstance(settings, Mapping):
        return max(map(_largest, settings.values()), default=0)
    if isinstance(settings, list):
        return max(map(_largest, settings), default=0)
    return settings if is_number(settings) else 0


def load_checkpoint_about(path: str | Path) -> dict[str, Any]:
    """Describe a checkpoint; the whole file is read, so that a damaged one is refused."""
    _, metadata = read_tensors(path)
    return _about(path, metadata)


def describe_network(network: nn.Module) -> str:
    """Return a network's class and settings as JSON."""
    if not isinstance(network, Network) or type(network) not in NETWORKS.values():
        known = ", ".join(kind.__name__ for kind in NETWORKS.values())
        raise InputError(f"Only {known} can be written as a checkpoint, not {type(network).__name__}.")
    return json.dumps(network.describe())


def build_network(description: Mapping[str, Any]) -> nn.Module:
    """Build the network that a checkpoint describes; its class is one of the registered networks."""
    settings = dict(description)
    name = settings.pop("class", None)
    matching = [kind for kind in NETWORKS.values() if kind.__name__ == name]
    if not matching:
        raise InputError(
            f"This checkpoint holds a network {name!r}, which recollect does not know here; "
            "install the package that registers it, or the version of recollect that wrote it."
        )
    try:
        return matching[0](**settings)
    except (
        TypeError,
        AttributeError,
        RuntimeError,
        ArithmeticError,
    ) as error:  # of any settings
        raise InputError(f"This version of recollect cannot build the checkpoint's {name}: {error}") from None


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata with a checksum over both."""
    from safetensors.torch import save

    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomically(Path(path)) as file:
        file.write_bytes(save(on_cpu, {**metadata, CHECKSUM: _checksum(on_cpu, metadata)}))


def read_tensors(
    path: str | Path, device: torch.device | str = "cpu", *, only_metadata: bool = False
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors and the metadata, of one and the same version of a file that may be replaced meanwhile."""
    if not Path(path).is_file():
        raise InputError(f"There is no checkpoint {path}.")
    check_safetensors(Path(path))
    while True:
        before = _stamp(path)
        read = _read_tensors(path, str(device), only_metadata)
        if _stamp(path) == before:  # safetensors opens a file once for its header and again for its tensors
            break
    tensors, metadata = read
    if not only_metadata:
        _check_unchanged(path, tensors, metadata)
    return tensors, {name: text for name, text in metadata.items() if name != CHECKSUM}


def _check_unchanged(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Refuse a file of recollect's own that was changed; others have no checksum."""
    is_own = metadata.get("format", "").startswith("recollect-")
    if (is_own or CHECKSUM in metadata) and metadata.get(CHECKSUM) != _checksum(tensors, metadata):
        raise InputError(f"{path} was changed or damaged after it was written: its checksum does not fit.")


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    described = {name: text for name, text in metadata.items() if name != CHECKSUM}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


def _read_tensors(path: str | Path, device: str, only_metadata: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=device) as file:
            names = [] if only_metadata else list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from None


def _stamp(path: str | Path) -> tuple[int, int, int]:
    status = Path(path).stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _about(path: str | Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Read the metadata of one of our checkpoints, with the network's settings."""
    if metadata.get("format") != FORMAT:
        raise InputError(f"{path} is a safetensors file, but not one of recollect's checkpoints.")
    try:
        return {**json.loads(metadata["about"]), "network": dict(json.loads(metadata["network"]))}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"{path} is a checkpoint whose description is damaged.") from None
