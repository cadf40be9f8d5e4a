"""Folders in Hugging Face layout from a stranger: a description in config.json, and weights beside it."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import nn

from recollect.devices.outline import outline_within
from recollect.errors import InputError, first_line
from recollect.files.archives import check_safetensors
from recollect.records import read_json

CONFIG = "config.json"
SAFE = ".safetensors"  # weights that open
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")  # weights that could run code, which do not
_WEIGHTS = re.compile(r"diffusion_pytorch_model(?:\.(\w+))?(?:-\d+-of-\d+)?\.safetensors")
MOST_TENSORS = 20_000
LONGEST_CONFIG = 2**20  # bytes


def read_config(file: Path, *, infinite: bool = False) -> dict[str, Any]:
    """Read the settings of a network, or of a noise schedule, where numbers may be infinite."""
    if file.exists():
        _check_file(file)
    settings = read_json(file, infinite=infinite)
    if not isinstance(settings, dict):
        raise InputError(f"{file} does not describe a model.")
    return settings


def describes_network(folder: Path) -> bool:
    """Say whether the config.json of a folder names the class of its network, as diffusers and transformers do."""
    with suppress(InputError):
        return not {"_class_name", "architectures"}.isdisjoint(read_config(folder / CONFIG))
    return False


def files_of(folder: Path) -> list[Path]:
    """List the files that a model in such a folder is made of."""
    return [file for file in folder.iterdir() if file.suffix in (".json", SAFE)]


def check_plain(*folders: Path) -> None:
    """Refuse files that must not be read: pipes, and descriptions beyond their limit."""
    for file in {file for folder in folders for file in folder.iterdir()}:
        _check_file(file)


def check_network_folder(folder: Path) -> None:
    """Refuse a folder with files that must not be read, or without weights as safetensors."""
    check_plain(folder)
    names = sorted(file.name for file in folder.iterdir())
    if any(name.endswith(SAFE) for name in names):  # a pickle beside them is not read
        for file in folder.glob(f"*{SAFE}.index*.json"):
            _check_parts(file)
        return
    pickles = [name for name in names if name.endswith(PICKLES)]
    problem = f"only a pickle ({pickles[0]}), which could run code" if pickles else "and pickles (.bin) are not opened"
    raise InputError(
        f"{folder} holds no weights as safetensors, {problem}: if you trust the model, open it with the library that "
        "wrote it and save it with save_pretrained, which writes safetensors."
    )


def variant_of(folder: Path) -> str | None:
    """Return the variant of diffusers' weights in a folder, such as fp16, where it holds no plain ones."""
    variants = {match[1] for file in folder.iterdir() if (match := _WEIGHTS.fullmatch(file.name))}
    return None if None in variants else min(variants, default=None)


def check_size(folder: Path, build: Callable[[], nn.Module]) -> None:
    """Refuse a network that is far larger than its weights, before it takes memory."""
    stored = sum(file.stat().st_size for file in folder.glob(f"*{SAFE}"))  # a weight takes at least a byte
    try:
        with quiet("diffusers", "transformers"):
            outline = outline_within(MOST_TENSORS, stored, build)
    except Exception as error:  # libraries refuse wrong settings with any error
        reason = first_line(error).rstrip(".")
        raise InputError(f"The network in {folder} cannot be opened: {reason}.") from None
    if outline is None:
        raise InputError(f"The network in {folder} has far more weights than its files hold.")


@contextmanager
def quiet(*libraries: str) -> Iterator[None]:
    """Open a model without what a library warns of, such as packages that it would like, and without its bars."""
    loggers = [logging.getLogger(name) for name in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _without_bars(libraries):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _without_bars(libraries: Sequence[str]) -> Iterator[None]:
    """Let libraries show no progress bar; an audit has one of its own."""
    names = [f"{name}.utils.logging" for name in libraries]
    imported: list[Any] = [sys.modules[name] for name in names if name in sys.modules]
    with_bars = [library for library in imported if library.is_progress_bar_enabled()]
    for library in with_bars:
        library.disable_progress_bar()
    try:
        yield
    finally:
        for library in with_bars:
            library.enable_progress_bar()


def load_safetensors(folder: Path, what: str, from_pretrained: Callable[..., Any], **options: Any) -> Any:
    """Load a network with a library's function, from files that lie in the folder and are no pickles."""
    try:
        with quiet("diffusers", "transformers"):
            network, loaded = from_pretrained(
                str(folder), use_safetensors=True, local_files_only=True, output_loading_info=True, **options
            )
    except Exception as error:  # libraries refuse a missing or damaged file with any error
        reason = first_line(error).rstrip(".")
        raise InputError(f"The {what} in {folder} cannot be opened: {reason}.") from None
    check_loaded(folder, network, loaded)
    return network


def check_loaded(folder: Path, network: nn.Module, loaded: Mapping[str, Any]) -> None:
    """Refuse a network that lacks weights, or has some that are not finite; `loaded` is what the library reports."""
    if missing := sorted(map(str, loaded["missing_keys"]))[:3]:
        raise InputError(f"The model in {folder} cannot be used: weights are missing ({', '.join(missing)}).")
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise InputError(f"The model in {folder} cannot be used: some of its weights are not finite.")


def _check_parts(index: Path) -> None:
    """Refuse an index of weights in parts that names other files than safetensors beside it."""
    parts = read_config(index).get("weight_map")
    names = list(parts.values()) if isinstance(parts, dict) else [None]
    if not all(isinstance(name, str) and name.endswith(SAFE) and Path(name).name == name for name in names):
        raise InputError(f"{index} names other files than safetensors beside it; save the model with save_pretrained.")


def _check_file(file: Path) -> None:
    """Refuse a pipe, which would be waited for without end, and a file that is beyond its limit."""
    if file.is_dir():
        return
    if not file.is_file():
        raise InputError(f"{file} is no plain file; a model's folder consists of plain files.")
    if file.suffix == ".json" and file.stat().st_size > LONGEST_CONFIG:
        raise InputError(f"{file} has {file.stat().st_size:,} bytes; a description of a model has a few thousand.")
    if file.suffix == SAFE:
        check_safetensors(file)
