"""Code of the user's own that is named as package.module:name: a model's factory, or a set of images.

This imports the module that the user names, as running it in Python would: name only code that you trust.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.errors import InputError, exit_called, first_line

_NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SCRIPT = re.compile(r"(.+)\.py(?::(\w+))?")


def names_code(text: str) -> bool:
    """Return whether a text has the form package.module:name and is no file."""
    return bool(_NAMED.fullmatch(text)) and not Path(text).exists()


def advice_for_script(text: str) -> str:
    """Say how the code of a script is named, for a text that names its file; nothing for other text."""
    script = _SCRIPT.fullmatch(text)
    if script is None:
        return ""
    module = script[1].removeprefix("./").replace("/", ".")
    return f"Code is named as package.module:name, so write {module}:{script[2] or 'NAME'} in place of {text}."


def can_be_found(text: str) -> bool:
    """Return whether the package of package.module:name can be found; nothing is imported."""
    with working_folder_importable():
        return importlib.util.find_spec(text.partition(":")[0].partition(".")[0]) is not None


def find_code(text: str) -> Any:
    """Import package.module, from the working folder too, and return what is called name in it."""
    module_name, _, name = text.partition(":")
    with working_folder_importable():
        return _named(_imported(module_name, text), name, text)


def call(factory: Any, text: str, returns: str) -> Any:
    """Call a function of the user's without arguments; `returns` is for the error."""
    with working_folder_importable():
        try:
            return factory()
        except SystemExit as error:
            raise exit_called(text, error) from error
        except Exception as error:  # the user's code may raise anything, and the user has to see it
            raise InputError(
                f"{text} was called without arguments and raised {type(error).__name__}: {first_line(error)}. "
                f"Name a function that needs none and returns {returns}."
            ) from error


def _imported(name: str, text: str) -> Any:
    try:
        with _without_arguments(name):
            return importlib.import_module(name)
    except SystemExit as error:
        raise InputError(
            f"Importing {name} for {text} called sys.exit({error.code!r}); put what is to happen only when the script "
            'is run under if __name__ == "__main__":.'
        ) from error
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise InputError(f"Importing {name} for {text} needs {error.name}, which is not installed.") from error
        if advice := advice_for_script(text):
            raise InputError(advice) from None
        raise InputError(
            f"There is no module {name} (of {text}); Python searched its import path and {Path.cwd()}."
        ) from None
    except Exception as error:  # as above
        raise InputError(f"Importing {name} raised {type(error).__name__}: {first_line(error)}") from error


def _named(module: Any, name: str, text: str) -> Any:
    value = module
    for part in name.split("."):
        if not hasattr(value, part):
            public = [n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))]
            raise InputError(f"{text}: {module.__name__} has no {name}; it has {', '.join(public[:12]) or 'none'}.")
        value = getattr(value, part)
    return value


@contextmanager
def _without_arguments(name: str) -> Iterator[None]:
    """Hide the arguments of recollect from a script that reads its own, and let its usage carry its name."""
    before, sys.argv = sys.argv, [name]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def working_folder_importable() -> Iterator[None]:
    """Import from the working folder too, as `python -m` does and a command does not."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
