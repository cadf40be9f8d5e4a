"""TorchScript: a program in torch's own small language, read before it is loaded.

The language has no way to Python, but a file may hold code that runs when it is loaded (`__setstate__`), and a few of
its operators write or read files. Archives with either are refused before torch loads them.
"""

from __future__ import annotations

import re
import warnings
from io import BytesIO
from pathlib import Path

import torch
from torch import nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.refusals import unsafe_program
from recollect.models.wording import first_line

ON_LOADING = {"__setstate__"}
ON_FILES = {"save", "load", "from_file", "open"}
NAMESPACES = {"aten", "prim", "prims", "quantized"}  # operators of torch itself
WAY_ROUND = "Export the model again without it, or build it from your own code with package.module:factory."


def open_torchscript(path: Path, device: torch.device | str) -> nn.Module:
    """The model of a TorchScript archive, in eval mode."""
    data = path.read_bytes()  # once, so that what is checked is what is loaded
    try:
        check_program(data, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls TorchScript deprecated; the file is what the user has
            model = torch.jit.load(BytesIO(data), map_location=device)
    except RuntimeError as error:
        raise InputError(f"{path} cannot be opened as TorchScript: {first_line(error)}") from None
    return model.eval()


def check_program(data: bytes, path: Path) -> None:
    """Refuse code that runs on loading or touches files; read by the reader that torch.jit.load uses."""
    reader = torch._C.PyTorchFileReader(BytesIO(data))
    names = [name for name in reader.get_all_records() if not name.endswith(".debug_pkl")]
    if any(name.lower() == "model.json" for name in names):
        raise unsafe_program(path, "it is in the TorchScript format of before torch 1.4", "Save it with a newer torch.")
    for name in names:
        if name.lower().startswith("code/"):
            _check_source(reader.get_record(name).decode("utf-8", "replace"), path)


def _check_source(source: str, path: Path) -> None:
    """Words are looked for wherever they stand: an alias or an odd spelling cannot hide them."""
    words = set(re.findall(r"[A-Za-z_]\w*", source))
    if words & ON_LOADING:
        raise unsafe_program(path, "it holds TorchScript code that runs when the file is loaded", WAY_ROUND)
    if words & ON_FILES:
        found = ", ".join(sorted(words & ON_FILES))
        raise unsafe_program(path, f"its code uses {found}, which in TorchScript can reach files", WAY_ROUND)
    strangers = set(re.findall(r"\bops\s*\.\s*(\w+)", source)) - NAMESPACES
    if strangers:
        raise unsafe_program(
            path, f"it uses operators that are not torch's own ({', '.join(sorted(strangers))})", WAY_ROUND
        )


def is_torchscript(model: ModelReference) -> bool:
    """Return whether an archive holds TorchScript code."""
    return "constants.pkl" in model.entries or any(name.startswith("code/") for name in model.entries)


FORMAT = ModelFormat(
    name="torchscript",
    summary="TorchScript",
    example="model.pt, model.ts",
    recognises=is_torchscript,
    open=lambda model: open_torchscript(model.path, choose_device(model.device)),
    suffixes=(".pt", ".ts"),
    order=40,
)
