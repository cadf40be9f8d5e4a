"""The command line: parse, one call, print."""

from recollect.cli.entry import main

__all__ = ["main"]
