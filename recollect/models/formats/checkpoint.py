"""Checkpoints of recollect: safetensors that describe their network. Other safetensors hold weights alone."""

from __future__ import annotations

from torch import Tensor, nn

from recollect import checkpoints
from recollect.devices.precision import choose_device
from recollect.errors import InputError
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.refusals import weights_alone
from recollect.models.wording import option


def is_safetensors(model: ModelReference) -> bool:
    """Return whether a file starts as safetensors do: the length of a header in JSON, and its opening brace."""
    if model.start[8:9] != b"{":
        return False
    return int.from_bytes(model.start[:8], "little") <= model.path.stat().st_size


def open_checkpoint(model: ModelReference) -> nn.Module:
    """Open a network with the weights that `recollect train` or `save_checkpoint` wrote."""
    _, metadata = checkpoints.read_tensors(model.path, only_metadata=True)
    if metadata.get("format") != checkpoints.FORMAT:
        raise weights_alone(model.path)
    return checkpoints.load_checkpoint(model.path, choose_device(model.device)).network.eval()


def read_weights(file: ModelReference) -> dict[str, Tensor]:
    """Read the names and tensors of any safetensors file."""
    if file.weights_key is not None:
        unused = option("weights_key", file.weights_key)
        raise InputError(f"{file.path} holds one set of weights; leave {unused} out.")
    tensors, _ = checkpoints.read_tensors(file.path)
    return tensors


FORMAT = ModelFormat(
    name="checkpoint",
    summary="a recollect checkpoint",
    example="runs/a/loss-1e-08.safetensors",
    recognises=is_safetensors,
    open=open_checkpoint,
    read_weights=read_weights,
    suffixes=(".safetensors",),
    order=10,
)
