"""The command line: parse, one call, print."""

from recollect.cli.app import main

__all__ = ["main"]
