"""The entry point. It handles signals before it imports anything that takes time."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

from recollect.cli import signals


def main() -> None:
    """Run the command line."""
    signals.exit_at_once()
    app = _load()
    try:
        app(prog_name="recollect")
    except (ImportError, MemoryError) as error:  # typer imports the libraries that read arguments when it needs them
        _fail(_not_loaded(error))
    except OSError as error:  # commands handle their own: here --help, --version or a last sentence was not written
        _fail(f"the output cannot be written: {error.strerror or error}")
    finally:
        signals.ignore()
        _discard_unwritten()


def _load() -> Any:
    try:
        from recollect.cli.app import app
    except (ImportError, MemoryError, OSError) as error:  # a broken installation, or a limit of memory
        _fail(_not_loaded(error))
    return app


def _not_loaded(error: Exception) -> str:
    return f"it cannot be loaded: {str(error) or type(error).__name__}"


def _fail(reason: str) -> NoReturn:
    with suppress(OSError):  # stderr may be full too
        sys.stderr.write(f"recollect: {reason}.\n")
    sys.exit(1)


def _discard_unwritten() -> None:
    """Discard output that cannot be written: the interpreter would try again at its end, and print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # None: it was closed when the interpreter started
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
