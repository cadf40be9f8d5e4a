"""Safetensors files where that package is not installed: a JSON header, then the tensors' raw bytes."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.errors import InputError

KINDS = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "U8": torch.uint8, "BOOL": torch.bool}
_NAMES = {kind: name for name, kind in KINDS.items()}
_LONGEST_HEADER = 100_000_000


def save_plainly(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The content of a file with these tensors, readable by safetensors."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, at = [], 0
    for name, tensor in tensors.items():
        part = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape)} | {
            "data_offsets": [at, at + len(part)]
        }
        parts.append(part)
        at += len(part)
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    return b"".join([struct.pack("<Q", len(words)), words, *parts])


def read_plainly(
    path: str | Path, device: str = "cpu", *, only_metadata: bool = False
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file; nothing in it is trusted."""
    try:
        with Path(path).open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError(f"its header would be {length} bytes long")
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__", {})
            content = bytearray() if only_metadata else bytearray(file.read())
        names = [] if only_metadata else list(header)
        return {name: _tensor(header[name], content).to(device) for name in names}, metadata
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from None


def _tensor(entry: Mapping[str, Any], content: bytearray) -> Tensor:
    start, stop = entry["data_offsets"]
    kind, shape = KINDS[entry["dtype"]], tuple(entry["shape"])
    if not 0 <= start <= stop <= len(content) or stop - start != math.prod(shape) * kind.itemsize:
        raise ValueError("a tensor does not lie where the header says")
    if start == stop:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(content, dtype=torch.uint8, count=stop - start, offset=start).clone().view(kind).view(shape)
