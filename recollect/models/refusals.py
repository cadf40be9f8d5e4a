"""Errors for files that are refused, with what their owner can run to make one that opens."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import InputError
from recollect.model_folders import describes_network


class Refused(Exception):
    """Why a program is not opened."""


def needs_pickle(path: Path, why: str) -> InputError:
    """Refuse a file that only full unpickling can read, which would run whatever code the file holds."""
    new = path.with_suffix(".safetensors").name
    return InputError(
        f"{path} is refused: {why}. Reading it needs pickle, which runs code that the file names; none of it was run. "
        "If you trust where the file comes from, convert it once, where the model's classes can be imported:\n\n"
        "    import torch\n"
        "    from safetensors.torch import save_file\n"
        f'    saved = torch.load("{path.name}", map_location="cpu", weights_only=False)  # runs code from the file\n'
        '    weights = saved.state_dict() if hasattr(saved, "state_dict") else saved.get("state_dict", saved)\n'
        f'    save_file({{k: v.clone().contiguous() for k, v in weights.items()}}, "{new}")\n\n'
        f"then open package.module:factory with weights={new}."
    )


def weights_alone(path: Path) -> InputError:
    """Refuse weights without the network they belong to."""
    if describes_network(path.parent):
        return InputError(f"{path} holds weights alone; give its folder, {path.parent}, which describes their network.")
    return InputError(
        f"{path} holds weights without a network; name the code that builds the network, package.module:factory, "
        f"and give the file as its weights: weights={str(path)!r} (--weights {path})."
    )


def unsafe_program(path: Path, why: str, advice: str) -> InputError:
    """Refuse a program file that could do more than compute."""
    return InputError(f"{path} is refused: {why}. Nothing of it was run. {advice}")
