"""How a diffusion model's network becomes a denoiser: D(x; sigma) = skip x + out F(scale x, time).

F is the network, x a clean image in [-1, 1] plus noise of standard deviation sigma. Every common parametrization has
this form (Karras et al. 2022, table 1); they differ in the four coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from recollect.errors import InputError

PREDICTIONS = ("epsilon", "v_prediction", "sample")  # what a network may return, in diffusers' words
LOWEST, HIGHEST = 0.002, 80.0  # noise levels of EDM (Karras et al. 2022), for models that name none


class Coefficients(NamedTuple):
    """The four coefficients at one noise level, or at one for each image."""

    skip: Any
    out: Any
    scale: Any
    time: Any  # what the network is told of the noise level


class Preconditioning(Protocol):
    """The coefficients at every noise level of a model."""

    @property
    def lowest(self) -> float:
        """The lowest noise level that the model was trained for."""

    @property
    def highest(self) -> float:
        """The highest noise level that the model was trained for."""

    def at(self, sigma: float, /) -> Coefficients:
        """Compute the coefficients at a noise level."""


@dataclass(frozen=True)
class VariancePreserving:
    """A network of discrete time steps, at which sqrt(a) x0 + sqrt(1 - a) noise is shown to it (DDPM and kin).

    A noise level between two time steps has a time between them, linear in the logarithm of the noise level. A
    network that learned one embedding for each time step knows `whole_steps` alone, and takes the nearest one.
    """

    alphas_cumprod: tuple[float, ...]
    prediction: str = "epsilon"
    whole_steps: bool = False

    def __post_init__(self) -> None:
        if self.prediction not in PREDICTIONS:
            raise InputError(f"The model predicts {self.prediction!r}; known are {', '.join(PREDICTIONS)}.")
        a = np.asarray(self.alphas_cumprod)
        if len(a) < 2 or not np.all((a >= 0) & (a < 1)) or not np.all(np.diff(a) < 0):
            raise InputError("The noise schedule's alphas_cumprod must fall from below 1 to 0 or more.")

    @property
    def sigmas(self) -> np.ndarray:
        """The noise level of each time step that leaves something of the image."""
        a = np.asarray(self.alphas_cumprod, np.float64)
        a = a[a > 0]
        return np.sqrt((1 - a) / a)

    @property
    def lowest(self) -> float:
        return float(self.sigmas[0])

    @property
    def highest(self) -> float:
        return float(self.sigmas[-1])

    def at(self, sigma: float) -> Coefficients:
        time = self.time(sigma)
        if self.whole_steps:
            time = round(time)
            sigma = float(self.sigmas[time])
        scale = 1 / math.sqrt(1 + sigma**2)
        if self.prediction == "epsilon":
            return Coefficients(1.0, -sigma, scale, time)
        if self.prediction == "v_prediction":
            return Coefficients(scale**2, -sigma * scale, scale, time)
        return Coefficients(0.0, 1.0, scale, time)

    def time(self, sigma: float) -> float:
        """Find the time step at which the model was shown this much noise."""
        return float(np.interp(math.log(sigma), np.log(self.sigmas), np.arange(len(self.sigmas))))


@dataclass(frozen=True)
class RectifiedFlow:
    """A network that predicts noise minus image, and is shown (1 - s) x0 + s noise at time s times `steps`."""

    steps: int = 1000
    lowest: float = LOWEST
    highest: float = HIGHEST

    def at(self, sigma: float) -> Coefficients:
        s = sigma / (1 + sigma)
        return Coefficients(1 - s, -s, 1 - s, s * self.steps)


@dataclass(frozen=True)
class EDM:
    """The preconditioning of Karras et al. 2022; with sigma_data = 1 its network predicts v but for the sign."""

    sigma_data: float = 0.5
    sign: float = 1.0  # -1 for a network that predicts v
    lowest: float = LOWEST
    highest: float = HIGHEST

    def at(self, sigma: Any) -> Coefficients:
        """Compute the coefficients; sigma may be a tensor of noise levels."""
        total = (sigma**2 + self.sigma_data**2) ** 0.5
        logarithm = math.log(sigma) if isinstance(sigma, float | int) else sigma.log()
        return Coefficients(
            (self.sigma_data / total) ** 2, self.sign * sigma * self.sigma_data / total, 1 / total, logarithm / 4
        )


@dataclass(frozen=True)
class Direct:
    """A function f(x, sigma) that returns the clean image itself."""

    lowest: float = LOWEST
    highest: float = HIGHEST

    def at(self, sigma: float) -> Coefficients:
        return Coefficients(0.0, 1.0, 1.0, sigma)


def alphas(sigmas: Sequence[float]) -> list[float]:
    """Return how much of the image is left, as a variance, at these noise levels."""
    return [1 / (1 + sigma**2) for sigma in sigmas]
