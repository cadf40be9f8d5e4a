"""TorchScript: a program in torch's own small language, opened from a checked copy.

The language cannot reach Python, but some of its operators write and read files, and an archive may hold code that
runs when it is loaded. A search for words cannot find these, because the language has many spellings of one name. So
the file itself is never given to torch. Its code is parsed, held against a closed grammar and a closed list of
operators, and written anew (`torchscript_grammar`). Its values are followed step by step (`torchscript_values`). torch
opens the copy made of these (`torchscript_archive`). Loading a copy compiles its code. At most, torch computes numbers
and texts from literals on the way; the texts are bounded (`torchscript_text`). Before anything is called, the operators
that torch itself resolved are held against the same list, in case the two parsers disagree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, first_line
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.refusals import Refused, unsafe_program
from recollect.models.safety.operators import PRIMITIVES, SCRIPT_OPERATORS, STRUCTURE
from recollect.models.safety.torchscript_archive import clean_copy

WAY_ROUND = "Export the model again without it, or build it from your own code with package.module:factory."


def open_torchscript(path: Path, device: torch.device | str) -> nn.Module:
    """Open the model of a TorchScript archive, in eval mode."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls TorchScript deprecated; the file is what the user has
            return load_checked(clean_copy(path), device).eval()
    except Refused as error:
        raise unsafe_program(path, str(error), WAY_ROUND) from None
    except InputError as error:  # beyond a limit
        raise InputError(f"{path} is refused. {error} Nothing of it was run.") from None
    except Exception as error:  # torch raises several kinds for what it cannot read
        raise InputError(f"{path} cannot be opened as TorchScript: {first_line(error)}") from None


def load_checked(content: bytes, device: torch.device | str) -> nn.Module:
    """Load an archive and check the operators that torch found in it; none of them has run."""
    unit = torch._C.CompilationUnit()
    load: Callable[..., Any] = torch._C.import_ir_module_from_buffer  # what torch.jit.load calls
    module = load(unit, content, torch.device(device), {}, False)
    check_compiled(unit)
    if not module._has_method("forward"):
        raise Refused("it has no forward, so that it cannot be called")
    return torch.jit._recursive.wrap_cpp_module(module)


def check_compiled(unit: Any) -> None:
    """Refuse a compiled program with an operator that is not on the list."""
    checked: set[str] = set()
    while functions := [function for function in unit.get_functions() if function.qualified_name not in checked]:
        for function in functions:  # compiling one may add those that it calls
            checked.add(function.qualified_name)
            for kind in _kinds(function.graph):
                if not _is_listed(kind):
                    raise Refused(f"it uses {kind}, which is not on the list of operators that only compute")


def _kinds(block: Any) -> Iterator[str]:
    for node in block.nodes():
        yield node.kind()
        for inner in node.blocks():
            yield from _kinds(inner)


def _is_listed(kind: str) -> bool:
    namespace, _, name = kind.partition("::")
    return name in {"aten": SCRIPT_OPERATORS, "prim": PRIMITIVES | STRUCTURE}.get(namespace, frozenset())


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
