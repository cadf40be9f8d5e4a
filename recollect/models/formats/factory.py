"""A model built by code of the user's own: package.module:factory.

This imports and calls the code that the user names, as running it in Python would: name only code that you trust.
It is the one way of opening a model that runs code, and no file can bring it about.
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

from recollect.errors import InputError
from recollect.models.wording import first_line

_SPELLING = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_factory(what: str) -> bool:
    return bool(_SPELLING.fullmatch(what))


def build(what: str) -> Callable[..., Any]:
    """Import the module, from the working folder too, and call its factory without arguments."""
    module_name, _, name = what.partition(":")
    with _working_folder_importable():
        found = _named(_imported(module_name, what), name, what)
        if isinstance(found, nn.Module):
            return found
        if not callable(found):
            raise InputError(
                f"{what} is a {type(found).__name__}; expected a function or a class that builds the model."
            )
        try:
            model = found()
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
            f"There is no module {name} (of {what}); it is looked for where Python imports from and in {Path.cwd()}."
        ) from None
    except Exception as error:  # as above
        raise InputError(f"Importing {name} raised {type(error).__name__}: {first_line(error)}") from error


def _named(module: Any, name: str, what: str) -> Any:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))]
            raise InputError(f"{what}: {module.__name__} has no {name}; it has {', '.join(public[:12]) or 'none'}.")
        found = getattr(found, part)
    return found


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """A command does not look in the working folder by itself, as `python -m` does."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
