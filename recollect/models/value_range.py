"""The range of values that a model works on: pixels in [0, 1] are converted to it and back.

It is read without torch: the command line refuses a mistake before that import.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import InputError
from recollect.models.wording import option

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Numbers = str | float | Sequence[float]


@dataclass(frozen=True)
class Scaling:
    """value = pixel * scale + shift, with one number for all channels or one a channel."""

    scale: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    words: str = field(default=option("input_range", "0,1"), compare=False)  # the options that say the same

    @classmethod
    def of_range(cls, low: float, high: float, name: str = "input_range") -> Scaling:
        return cls((high - low,), (low,), option(name, f"{low:g},{high:g}"))

    @classmethod
    def of_statistics(cls, mean: Sequence[float], std: Sequence[float]) -> Scaling:
        """(pixel - mean) / std, as torchvision's Normalize."""
        options = f"{option('mean', with_commas(mean))} and {option('std', with_commas(std))}"
        means, stds = np.broadcast_arrays(np.array(mean, float), np.array(std, float))
        return cls(tuple((1 / stds).tolist()), tuple((-means / stds).tolist()), options)

    @property
    def plain(self) -> bool:
        return set(self.scale) == {1.0} and set(self.shift) == {0.0}

    @property
    def as_output(self) -> str:
        """The option that states it of the output alone; there is none for a scaling of each channel."""
        if len(self.scale) > 1:
            return self.words
        return option("output_range", f"{self.shift[0]:g},{self.shift[0] + self.scale[0]:g}")

    def to_model(self, pixels: Tensor) -> Tensor:
        if self.plain:
            return pixels
        scale, shift = self._like(pixels)
        return pixels * scale + shift

    def to_pixels(self, values: Tensor) -> Tensor:
        if self.plain:
            return values
        scale, shift = self._like(values)
        return (values - shift) / scale

    def _like(self, x: Tensor) -> tuple[Tensor | float, Tensor | float]:
        if len(self.scale) == 1:  # plain numbers: nothing to move to a device
            return self.scale[0], self.shift[0]
        if x.ndim != 4 or x.shape[1] != len(self.scale):
            raise InputError(
                f"mean and std have {len(self.scale)} numbers, but the model works on tensors of shape "
                f"{tuple(x.shape)}; give one number, or one a channel."
            )
        return _of_channels(self.scale, x.dtype, x.device), _of_channels(self.shift, x.dtype, x.device)


@lru_cache(64)
def _of_channels(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Move numbers to a device once: a model that does so at every call cannot be captured as a CUDA graph."""
    import torch

    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device).view(1, -1, 1, 1)


def read_scaling(input_range: Numbers, mean: Numbers | None, std: Numbers | None) -> Scaling:
    """Return the scaling that options ask for."""
    stated = read_range("input_range", input_range)
    if mean is None and std is None:
        return stated
    if mean is None or std is None:
        missing = "mean" if mean is None else "std"
        raise InputError(f"mean and std are given together; {missing} is missing.")
    if not stated.plain:
        raise InputError("Give a range or mean and std, not both: mean and std are of pixels in [0, 1].")
    means, stds = numbers("mean", mean), numbers("std", std)
    if not {len(means), len(stds)} <= {1, 3}:
        raise InputError(f"mean and std have one number or one a channel (1 or 3); got {len(means)} and {len(stds)}.")
    if min(stds) <= 0:
        raise InputError(f"std is above 0, got {min(stds):g}.")
    if max(map(abs, means)) > 2:
        raise InputError(f"mean is of pixels in [0, 1], got {max(means):g}; divide mean and std by 255.")
    return Scaling.of_statistics(means, stds)


def read_range(name: str, given: Numbers) -> Scaling:
    """Read a range such as "-1,1", "0-1" or (-1, 1)."""
    if isinstance(given, str):
        given = given.strip().strip("[]()")
        if given.count("-") == 1 and "," not in given and not given.startswith("-"):
            given = given.replace("-", ",")  # 0-1, 0-255
    bounds = numbers(name, given)
    if len(bounds) != 2 or not bounds[0] < bounds[1]:
        raise InputError(f"{name} is two numbers, the lower first, such as -1,1; got {given!r}.")
    return Scaling.of_range(*bounds, name=name)


def with_commas(values: Sequence[float]) -> str:
    """Write numbers as `numbers` reads them."""
    return ",".join(f"{value:g}" for value in values)


def numbers(name: str, given: Numbers) -> tuple[float, ...]:
    """Read numbers from a number, several of them, or text such as 0.5,0.5,0.5."""
    parts: Sequence[str | float] = given.split(",") if isinstance(given, str) else ()
    if not isinstance(given, str):
        parts = [given] if isinstance(given, int | float) else list(given)
    try:
        values = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise InputError(f"{name} is numbers with commas between them, got {given!r}.") from None
    if not values or not all(map(math.isfinite, values)):
        raise InputError(f"{name} is finite numbers, got {given!r}.")
    return values
