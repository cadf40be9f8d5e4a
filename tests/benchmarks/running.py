"""Benchmarks as their user runs them, but in this process: a process of its own spends seconds on imports alone."""

import importlib
import io
import logging
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))


def benchmark(name: str) -> ModuleType:
    """The module benchmarks/NAME.py."""
    return importlib.import_module(name)


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def ended(name: str, *arguments: str) -> Ended:
    """What `python benchmarks/NAME.py ARGUMENTS` says in the end; an exception is not caught."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    threads, log = torch.get_num_threads(), logging.getLogger("recollect.accelerate")
    level, handlers = log.level, list(log.handlers)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            benchmark(name).main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
        err.write(stop.code if isinstance(stop.code, str) else "")
    finally:
        torch.set_num_threads(threads)
        log.setLevel(level)
        log.handlers[:] = handlers
    return Ended(code, out.getvalue(), err.getvalue())


def run(name: str, *arguments: str) -> str:
    """What it prints when all is well."""
    done = ended(name, *arguments)
    assert done.code == 0, done.err
    return done.out


def refused(name: str, *arguments: str) -> str:
    """What it says of a mistake."""
    done = ended(name, *arguments)
    assert done.code != 0
    return done.err
