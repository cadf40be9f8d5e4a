"""A model built by code of the user's own: package.module:factory.

This imports and calls the code that the user names, as running it in Python would: name only code that you trust.
No other format runs code, and no file can name a factory.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from recollect.devices.precision import choose_device
from recollect.errors import InputError, first_line
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.formats.weights import load_weights
from recollect.models.wording import option

_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_factory(model: ModelReference) -> bool:
    """Return whether a model is named as package.module:factory and is no file."""
    return bool(_FACTORY.fullmatch(model.text)) and not model.path.exists()


def open_factory(model: ModelReference) -> Callable[..., Any]:
    """Build a model by its factory, and load weights into it if a file of them is given."""
    built = build(model.text)
    if not isinstance(built, nn.Module):
        if model.weights is not None:
            raise InputError(f"{model.text} built a {type(built).__name__}, which takes no weights; leave them out.")
        return built
    if model.weights is None and model.weights_key is not None:
        unused = option("weights_key", model.weights_key)
        raise InputError(f"{unused} names an entry of a file of weights, and none is given; add --weights FILE.")
    if model.weights is not None:
        load_weights(built, Path(model.weights).expanduser(), model.weights_key)
    return built.to(choose_device(model.device)).float().eval()  # recoveries are scored in float32


def build(what: str) -> Callable[..., Any]:
    """Import the module, from the working folder too, and call its factory without arguments."""
    module_name, _, name = what.partition(":")
    with _working_folder_importable():
        factory = _named(_imported(module_name, what), name, what)
        if isinstance(factory, nn.Module):
            return factory
        if not callable(factory):
            raise InputError(
                f"{what} is a {type(factory).__name__}; expected a function or a class that builds the model."
            )
        try:
            model = factory()
        except Exception as error:  # the user's code may raise anything, and the user has to see it
            raise InputError(
                f"{what} was called without arguments and raised {type(error).__name__}: {first_line(error)}. "
                "Name a function that needs none and returns the model."
            ) from error
    if not callable(model):
        raise InputError(f"{what} returned a {type(model).__name__}; expected an nn.Module or another callable.")
    return model


def _imported(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise InputError(f"Importing {name} for {what} needs {error.name}, which is not installed.") from error
        raise InputError(
            f"There is no module {name} (of {what}); Python searched its import path and {Path.cwd()}."
        ) from None
    except Exception as error:  # as above
        raise InputError(f"Importing {name} raised {type(error).__name__}: {first_line(error)}") from error


def _named(module: Any, name: str, what: str) -> Any:
    value = module
    for part in name.split("."):
        if not hasattr(value, part):
            public = [n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))]
            raise InputError(f"{what}: {module.__name__} has no {name}; it has {', '.join(public[:12]) or 'none'}.")
        value = getattr(value, part)
    return value


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """Import from the working folder too, as `python -m` does and a command does not."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


FORMAT = ModelFormat(
    name="factory",
    summary="code that builds the network, with or without a file of weights",
    example="package.module:factory",
    recognises=is_factory,
    open=open_factory,
    takes_weights=True,
    order=20,
)
