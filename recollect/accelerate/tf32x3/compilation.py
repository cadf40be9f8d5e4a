"""Compile kernels side by side, before the first launch needs one.

Triton compiles a kernel when it is first launched, one after another, half a second each. A rehearsal runs the same
code without launching anything and collects what it would launch; threads then compile each variant once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor

Grid = tuple[int, ...]


class Launch(NamedTuple):
    """One launch that was rehearsed; tensors are replaced by their dtype, so that none is kept."""

    kernel: Any  # a triton.JITFunction
    grid: Grid
    arguments: tuple[Any, ...]
    settings: dict[str, Any]  # constants of the kernel, and options of the compiler

    @property
    def variant(self) -> Hashable:
        """Name what is compiled: Triton makes a variant for numbers that are 1 or multiples of 16, unless told not."""
        kinds = (_kind(value, param) for value, param in zip(self.arguments, self.kernel.params, strict=False))
        return id(self.kernel), *kinds, *sorted(self.settings.items(), key=str)


_rehearsed: ContextVar[list[Launch] | None] = ContextVar("_rehearsed", default=None)


def launch_kernel(kernel: Any, grid: Grid, *arguments: Any, **settings: Any) -> None:
    """Launch a kernel, or note the launch if this is a rehearsal."""
    launches = _rehearsed.get()
    if launches is None:
        kernel[grid](*arguments, **settings)
    else:
        kinds = tuple(value.dtype if isinstance(value, Tensor) else value for value in arguments)
        launches.append(Launch(kernel, grid, kinds, settings))


@contextmanager
def rehearsal() -> Iterator[list[Launch]]:
    """Collect launches in place of making them: the values of outputs are undefined."""
    launches: list[Launch] = []
    before = _rehearsed.set(launches)
    try:
        yield launches
    finally:
        _rehearsed.reset(before)


def compile_ahead(run: Callable[[], Any], device: torch.device) -> None:
    """Compile what `run` would launch. An error is left to the launch itself, where it is handled."""
    with rehearsal() as launches, suppress(Exception):
        run()
    compile_variants(launches, device)


def compile_variants(launches: list[Launch], device: torch.device) -> None:
    """Compile each variant once, in as many threads as there are cores: the compiler works outside of Python."""
    variants = list({launch.variant: launch for launch in launches}.values())
    for launch in variants:
        _ = launch.kernel.cache_key  # a hash of the source that threads would all compute
    if len(variants) > 1:
        with ThreadPoolExecutor(min(len(variants), os.cpu_count() or 1), "recollect-compile") as threads:
            list(threads.map(lambda launch: _compile(launch, device), variants))


def _compile(launch: Launch, device: torch.device) -> None:
    with suppress(Exception), torch.cuda.device(device):
        launch.kernel.warmup(*launch.arguments, grid=launch.grid, **launch.settings)


def _kind(value: Any, param: Any) -> Hashable:
    if not isinstance(value, int):
        return str(value) if isinstance(value, torch.dtype) or value is None else type(value).__name__
    return None if param.do_not_specialize else (value == 1, value % 16 == 0)
