"""Mistakes that can be seen before torch is imported, which takes seconds; they are refused in the usual sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.canaries.canary_list import list_of
from recollect.cli.listings import (
    declared_degradations,
    declared_denoising_networks,
    declared_experiments,
    declared_formats,
    declared_methods,
    declared_networks,
)
from recollect.errors import InputError
from recollect.mask_names import check_mask, is_mask, no_such_mask
from recollect.registry import not_among

_OF_PATHS = ("/", "./", "../", "~")  # no name on the hub begins so


def check_methods(names: str | None) -> None:
    """Refuse methods that no package registers."""
    _check_names("method", (names or "").split(","), declared_methods())


def check_network(name: str) -> None:
    """Refuse a network that no package registers."""
    _check_names("network", [name], declared_networks())


def check_denoising_network(name: str) -> None:
    """Refuse a network of diffusion models that no package registers."""
    _check_names("denoising network", [name], declared_denoising_networks())


def check_experiments(names: str) -> None:
    """Refuse experiments that no package registers."""
    if names != "all":
        _check_names("experiment", names.split(","), declared_experiments())


def check_choice(noun: str, name: str | None, choices: Sequence[str]) -> None:
    """Refuse what is none of these; None is left out."""
    if name is not None:
        _check_names(noun, [name], choices)


def _check_names(noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in (name.strip() for name in names):
        if name and name not in known:
            raise not_among(noun, name, known)


def check_masks(names: str) -> None:
    """Refuse what names neither a mask nor another kind of damage."""
    for name in (name.strip() for name in names.split(",")):
        if name != "all" and not is_mask(name) and name.partition(":")[0] not in declared_degradations():
            raise no_such_mask(name, [str(kind["example"]) for kind in declared_degradations().values()])
        check_mask(name)


def check_inputs(model: str, *sources: str | None, canaries: str | None = None) -> None:
    """Refuse a model, sources and a folder of canaries that do not exist."""
    check_model(model)
    if canaries is not None:
        list_of(canaries)
    for source in sources:
        if source is not None:
            check_source(source)


def check_model(text: str) -> None:
    """Refuse a file that does not exist, by its path or by the suffix of a model's file."""
    path = Path(text).expanduser()
    suffixes: dict[str, None] = {}  # each once, in this order
    for model_format in declared_formats().values():
        suffixes |= dict.fromkeys(model_format.get("suffixes", ()))
    if (path.suffix.lower() in suffixes or text.startswith(_OF_PATHS)) and not path.exists():
        raise InputError(
            f"{path} does not exist; a model is a file ({', '.join(suffixes)}), or package.module:factory."
        )


def check_stated(options: Mapping[str, Any]) -> None:
    """Refuse what cannot be meant of a model; options have the names that they have in `read_adaptation`."""
    from recollect.models.adaptation import read_adaptation

    read_adaptation(**options)


def check_source(text: str) -> None:
    """Refuse the address of a source, or of files, that do not exist."""
    from recollect.sources import SOURCES
    from recollect.sources.address import parse
    from recollect.sources.open_source import location_of, open_catalogue

    address = parse(text, SOURCES)
    if address.path and not SOURCES[address.source].runs_code and not location_of(address).exists():
        open_catalogue(address)  # refuses it in the sentence of its source


def check_folder(folder: Path) -> None:
    """Refuse a file where a folder is needed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; results need a folder of their own.")
