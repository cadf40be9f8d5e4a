"""What every model format is: how it recognises a model that is named, and how it opens it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.errors import InputError
from recollect.files.archives import BrokenZip, open_zip
from recollect.files.limits import MODEL_LISTING
from recollect.hub import fetch, is_hub_name
from recollect.model_folders import CONFIG, describes_network, read_config
from recollect.registry import Registry
from recollect.user_code import advice_for_script


@dataclass(frozen=True)
class ModelReference:
    """A model that is named, by a path or other text, and the options to open it with; nothing is unpickled here.

    Args:
        text: The path or name.
        device: Where the model runs.
        weights: A file of weights for a factory's network.
        weights_key: Which state dict of several.
        label: The class of a class-conditional diffusion model.

    Examples:
        >>> from recollect.models.formats import ModelReference
        >>> ModelReference("model.onnx").suffix
        '.onnx'
    """

    text: str
    device: torch.device | str | None = None
    weights: str | Path | None = None
    weights_key: str | None = None
    label: int | None = None  # the class of a class-conditional diffusion model

    @cached_property
    def path(self) -> Path:
        """Where the model lies; one that has only a name on the Hugging Face hub is fetched."""
        path = Path(self.text).expanduser()
        if path.exists() or path.suffix.lower() in all_suffixes() or not is_hub_name(self.text):
            return path
        return fetch(self.text)

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The settings in the config.json of a folder in Hugging Face layout; none of a file or other text."""
        file = self.path / CONFIG
        return read_config(file) if self.path.is_dir() and file.exists() else {}

    @cached_property
    def start(self) -> bytes:
        """The first bytes of a file; none of a folder or of other text."""
        if not self.path.is_file():
            return b""
        with self.path.open("rb") as file:
            return file.read(16)

    @cached_property
    def entries(self) -> frozenset[str]:
        """The names inside a zip archive, without their common folder; none of other files."""
        if self.start[:2] != b"PK":
            return frozenset()
        try:
            with open_zip(self.path, MODEL_LISTING) as archive:
                return frozenset(name.partition("/")[2] or name for name in archive.namelist())
        except BrokenZip as error:
            raise InputError(f"{self.path} cannot be read: {error}.") from None


@dataclass(frozen=True)
class ModelFormat:
    """One format of models: one file in this folder that holds one of these.

    Args:
        name: Its name.
        summary: One line for help and docs.
        example: What a user writes.
        recognises: Whether a model is of this format: by content, where content tells.
        open: Opens the model as a function from images to images.
        suffixes: Files that end so are of this format, if no format recognises their content.
        takes_weights: Whether a file of weights may be given beside it.
        takes_label: Whether a class may be stated.
        read_weights: Reads weights for a factory's network.
        files_beside: Further files that a model is made of.
        listed: Whether help lists it; False for formats that are recognised only to be refused.
        order: Formats are asked in this order, and listed so in help.

    Examples:
        >>> from recollect.models.formats import FORMATS
        >>> FORMATS["checkpoint"].suffixes
        ('.safetensors',)
    """

    name: str
    summary: str  # one line for help and docs
    example: str  # what a user writes
    recognises: Callable[[ModelReference], bool]  # by content, where content tells
    open: Callable[[ModelReference], Callable[..., Any]]
    suffixes: tuple[str, ...] = ()  # files that end so are of this format, if no format recognises their content
    takes_weights: bool = False  # a file of weights may be given beside it
    takes_label: bool = False  # a class may be stated
    read_weights: Callable[[ModelReference], Mapping[str, Tensor]] | None = None  # for a factory's network
    files_beside: Callable[[Path], Iterable[Path]] = lambda _path: ()  # further files that a model is made of
    listed: bool = True  # in help; False for what is recognised only to be refused
    order: int = 100  # formats are asked in this order, and listed so in help


FORMATS: Registry[ModelFormat] = Registry("model format", "recollect.models.formats", ModelFormat)


def find_format(model: ModelReference) -> ModelFormat:
    """Return the format that recognises a model by its content, else by its suffix."""
    if model.path.is_file() and not model.path.stat().st_size:
        raise InputError(f"{model.path} is an empty file; copy or save the model again.")
    for model_format in FORMATS.values():
        if model_format.recognises(model):
            return model_format
    if not model.path.is_file():
        raise _no_file(model)
    for model_format in FORMATS.values():
        if model.suffix in model_format.suffixes:
            return model_format
    raise _unknown_file(model)


def _unknown_file(model: ModelReference) -> InputError:
    if advice := advice_for_script(model.text):
        return InputError(advice)
    if model.path.name == CONFIG and describes_network(model.path.parent):
        return InputError(f"{model.path} describes a network; give its folder, {model.path.parent}.")
    problem = "is not a file of a known kind"
    if any(name.endswith(".npy") for name in model.entries):
        problem = "holds arrays, not a model"
    elif model.entries:
        problem = "is an archive of something else"
    return InputError(f"{model.path} {problem}; a model is one of {known_suffixes()}.")


def _no_file(model: ModelReference) -> InputError:
    if advice := advice_for_script(model.text):
        return InputError(advice)
    if model.text.startswith(("http://", "https://")):
        return InputError(
            f"No model is opened from the web; download {model.text} and give its path. A model of the Hugging Face "
            "hub has a name such as stabilityai/sd-vae-ft-mse."
        )
    if not model.text.strip():
        problem = "No model is named"
    elif model.path.is_dir():
        problem = f"{model.path} is a folder, not a file, and {_network_inside(model.path)}"
    else:
        problem = f"{model.path} does not exist"
    return InputError(f"{problem}; a model is a file ({known_suffixes()}), or package.module:factory.")


def _network_inside(folder: Path) -> str:
    """Say which folder in a folder holds a network, as that of a pipeline has one for its vae."""
    networks = [path.parent for path in sorted(folder.glob(f"*/{CONFIG}")) if describes_network(path.parent)]
    return f"the network in it is {networks[0]}" if networks else f"no {CONFIG} in it names a network"


def all_suffixes() -> list[str]:
    """List the suffixes of all formats, each once."""
    return list(dict.fromkeys(suffix for model_format in FORMATS.values() for suffix in model_format.suffixes))


def known_suffixes() -> str:
    """List the suffixes of all formats, for a sentence."""
    return ", ".join(all_suffixes())
