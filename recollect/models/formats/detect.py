"""What kind of file is this? Told by its content where content tells, and nothing is unpickled to find out."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

from recollect.errors import InputError

# What zipfile raises for a damaged archive; most of these are undocumented.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError, ValueError, OSError)
KNOWN = ".safetensors, .pt, .pth, .ts, .pt2, .onnx"


def kind_of(path: Path) -> str:
    """safetensors, onnx, torchscript, exported, weights (torch.save), arrays (.npz), pickle, archive or unknown."""
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}; a model is a file ({KNOWN}), or package.module:factory.")
    suffix = path.suffix.lower()
    if suffix in (".safetensors", ".onnx"):
        return suffix[1:]
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"PK":
        return _kind_of_zip(path)
    if start[:1] == b"\x80" or suffix in (".pt", ".pth", ".pkl", ".pickle", ".ckpt"):
        return "pickle"
    return "unknown"


def _kind_of_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.partition("/")[2] or name for name in archive.namelist()]
    except BROKEN_ZIP as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    if path.suffix.lower() == ".pt2" or "archive_format" in names or "serialized_exported_program.json" in names:
        return "exported"
    if "constants.pkl" in names or any(name.startswith("code/") for name in names):
        return "torchscript"
    if "data.pkl" in names:
        return "weights"
    return "arrays" if any(name.endswith(".npy") for name in names) else "archive"
