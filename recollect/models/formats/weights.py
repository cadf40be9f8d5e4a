"""Weights from a file into a network: safetensors, or a plain state dict of torch.save, read without running code."""

from __future__ import annotations

import pickletools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from recollect.counting import with_article
from recollect.errors import InputError, first_line
from recollect.files.archives import check_torch_archive
from recollect.models.formats.base import ModelFormat, ModelReference, find_format
from recollect.models.refusals import needs_pickle, weights_alone
from recollect.models.weight_names import fit_names
from recollect.models.wording import option

# What a state dict of tensors needs, and no more. It is read before torch sees the file, so it also holds where
# the process has widened torch's own list with add_safe_globals.
_ADMITTED = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_(tensor_v2|parameter)|torch (\w+Storage|Size|device)"
    r"|torch\.storage UntypedStorage|torch (b?float|u?int|complex|double|half|long|short|bool)\d*"
    r"|_codecs encode|(builtins|__builtin__) set"
)


def load_weights(network: nn.Module, path: Path, key: str | None) -> None:
    """Put the weights of a file into a network; every name has to fit.

    `key` is an entry of the file, or if it ends in a dot, the prefix of the names.
    """
    prefix = key if key and key.endswith(".") else None
    weights = fit_names(read_weights(path, None if prefix else key), network, path, prefix)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        text = "; ".join(line.strip() for line in str(error).splitlines()[1:4]) or first_line(error)
        raise InputError(f"The weights in {path} do not fit {type(network).__name__}: {text[:500]}") from None


def read_weights(path: Path, key: str | None = None) -> dict[str, Tensor]:
    """Read the names and tensors of a file."""
    if not path.is_file():
        raise InputError(f"There is no file of weights {path}.")
    file = ModelReference(str(path), weights_key=key)
    file_format = find_format(file)
    if file_format.read_weights is None:
        raise InputError(
            f"{path} holds no weights but a whole model ({file_format.summary}): open it by itself, without a factory."
        )
    return dict(file_format.read_weights(file))


def is_torch_save(model: ModelReference) -> bool:
    """Return whether an archive is of torch.save; formats that hold programs are asked before."""
    return "data.pkl" in model.entries


def read_state_dict(file: ModelReference) -> dict[str, Tensor]:
    """Read the state dict that torch.save wrote, alone or inside a training checkpoint."""
    return _state_dict(load_strictly(file.path), file.path, file.weights_key)


def refuse_weights_alone(model: ModelReference) -> NoReturn:
    """Refuse weights without a network; a file that needs pickle is refused for that first."""
    saved = load_strictly(model.path)
    if not _holds_tensors(saved):
        raise _no_state_dict(model.path, saved)
    raise weights_alone(model.path)


def load_strictly(path: Path) -> Any:
    """Load what torch.save wrote, if that is containers and tensors alone."""
    try:
        check_torch_archive(path)
        names = _names_in_pickle(torch._C.PyTorchFileReader(str(path)).get_record("data.pkl"))
    except InputError as error:  # beyond a limit
        raise InputError(f"{path} is refused. {error} Nothing of it was run.") from None
    except (RuntimeError, ValueError, IndexError) as error:
        raise InputError(f"{path} cannot be read: {first_line(error)}") from None
    refused = sorted(name.replace(" ", ".") for name in names if not _ADMITTED.fullmatch(name))
    if refused:
        raise needs_pickle(path, f"it is more than a state dict of tensors (it asks for {', '.join(refused[:4])})")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file can raise anything here
        raise needs_pickle(path, f"torch's reader for weights alone refused it ({first_line(error)})") from None


def _names_in_pickle(data: bytes) -> set[str]:
    """Collect every name that a pickle would import, as "module name"; the pickle is read, not run."""
    names = set()
    for operation, argument, _ in pickletools.genops(data):
        if operation.name == "GLOBAL":
            names.add(str(argument))
        elif operation.name in ("STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
            names.add(f"a name through {operation.name}")
    return names


def _state_dict(saved: Any, path: Path, key: str | None) -> dict[str, Tensor]:
    if key is not None:
        if not isinstance(saved, Mapping) or key not in saved:
            raise InputError(f"{path} has no {option('weights_key', key)}; it has {_keys(saved)}.")
        saved = saved[key]
    if _is_state_dict(saved):
        return dict(saved)
    inner = []
    if isinstance(saved, Mapping):
        inner = [name for name, part in saved.items() if _is_state_dict(part)]
    if len(inner) == 1:
        return dict(saved[inner[0]])
    if inner:
        choices = ", ".join(map(str, inner))
        example = option("weights_key", inner[0])
        raise InputError(f"{path} holds several sets of weights ({choices}); say which, for example {example}.")
    raise _no_state_dict(path, saved)


def _no_state_dict(path: Path, saved: Any) -> InputError:
    return InputError(f"{path} holds no state dict (names and tensors); it holds {_keys(saved)}.")


def _holds_tensors(saved: Any) -> bool:
    if isinstance(saved, Mapping):
        return any(map(_holds_tensors, saved.values()))
    return isinstance(saved, Tensor)


def _is_state_dict(part: Any) -> bool:
    if not isinstance(part, Mapping) or not part:
        return False
    return all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in part.items())


def _keys(saved: Any) -> str:
    if not isinstance(saved, Mapping):
        return f"{with_article(type(saved).__name__)}"
    return ", ".join(map(str, list(saved)[:12])) or "nothing"


FORMAT = ModelFormat(
    name="weights",
    summary="weights without a network, which go with package.module:factory",
    example="package.module:factory with weights=w.pt",
    recognises=is_torch_save,
    open=refuse_weights_alone,
    read_weights=read_state_dict,
    suffixes=(".pt", ".pth"),
    order=80,
    listed=False,
)
