"""A diffusion model as recollect sees it: D(x; sigma), the clean image behind a noisy one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from recollect.devices.precision import evaluation_mode, weights_of
from recollect.diffusion.card import Card
from recollect.diffusion.preconditioning import Coefficients, Direct, Preconditioning, VariancePreserving, alphas
from recollect.errors import InputError, first_line, is_number, is_whole

Predict = Callable[[Any, Tensor, Tensor], Tensor]
TIME_STEPS = 1000  # into which noise levels are divided for models that have no time steps
MIDDLE = 0.2  # the noise level that a model is first tried at
ANNEALED = (0.5, 0.05)  # noise levels of the first and the last step of an annealed round


def call(network: Any, x: Tensor, time: Tensor) -> Tensor:
    """Call a network that takes images and their noise level."""
    return network(x, time)


class Denoiser(nn.Module):
    """D(x; sigma): the clean images behind noisy images x.

    Images have values in [0, 1]. The noise level sigma is the standard deviation of the noise on images in [-1, 1], as
    the field states it: noise of sigma / 2 on images in [0, 1]. The same class serves as the audited model, by
    `at(sigma)`, and as a generic prior, by `noise(x, t)`. `open_denoiser` and `Denoiser.of` make one.

    Args:
        network: The network.
        preconditioning: How its inputs and outputs are scaled at each noise level.
        shape: Channels, height and width of its images.
        name: Its name in records.
        card: What it was trained on, if known.
        predict: Calls the network.

    Examples:
        >>> import torch
        >>> from recollect.diffusion import Denoiser
        >>> denoiser = Denoiser.of(lambda x, sigma: x, (3, 8, 8))
        >>> denoiser.at(0.2)(torch.zeros(1, 3, 8, 8)).shape
        torch.Size([1, 3, 8, 8])
    """

    latent = False  # whether the network denoises the latents of an autoencoder

    def __init__(
        self,
        network: Any,
        preconditioning: Preconditioning,
        shape: tuple[int, int, int],
        name: str,
        card: Card | None = None,
        predict: Predict = call,
    ) -> None:
        super().__init__()
        self.network, self.preconditioning, self.predict = network, preconditioning, predict
        self.shape, self.name, self.card = shape, name, card
        self.space = shape  # of what the network denoises

    @classmethod
    def of(cls, f: Callable[[Tensor, Tensor], Tensor], shape: tuple[int, int, int], name: str = "") -> Denoiser:
        """Take any function f(x, sigma) that returns the clean images, both in [-1, 1]; EDM's networks are such.

        Args:
            f: The function.
            shape: Channels, height and width of its images.
            name: Its name in records. Defaults to that of the function.

        Returns:
            The denoiser.
        """
        if not callable(f) or isinstance(f, type):
            raise InputError(f"A denoiser is a function f(x, sigma) that returns images; got {f!r}.")
        denoiser = cls(f, Direct(), _read_shape(shape), name or getattr(f, "__name__", type(f).__name__))
        denoiser.check()
        return denoiser

    def forward(self, images: Tensor, sigma: float | Coefficients) -> Tensor:
        """Return the clean images behind images in [0, 1] with noise of this level."""
        return self.decode(self.clean(self.encode(images), sigma))

    def encode(self, images: Tensor) -> Tensor:
        """Turn images in [0, 1] into what the network denoises: here images in [-1, 1]."""
        return 2 * images - 1

    def decode(self, x: Tensor) -> Tensor:
        """Turn what the network denoises into images in [0, 1]."""
        return (x + 1) / 2

    def clean(self, x: Tensor, sigma: float | Coefficients) -> Tensor:
        """Return the clean images behind x, both as encoded; a noise level may be given by its coefficients."""
        coefficients = sigma if isinstance(sigma, Coefficients) else self.preconditioning.at(sigma)
        return coefficients.skip * x + coefficients.out * self._predicted(x, coefficients)

    def coefficients(self, sigmas: Sequence[float]) -> Tensor:
        """Tabulate the four coefficients at these noise levels, a row each."""
        return torch.tensor([self.preconditioning.at(sigma) for sigma in sigmas], dtype=torch.float64)

    def at(self, sigma: float, *, annealed: bool = False) -> DenoiserAt:
        """Fix the noise level: the denoiser is then an autoencoder, which every method can attack.

        Args:
            sigma: The noise level.
            annealed: Whether the noise level falls along the steps of ADMM; it is sigma in all other calls.

        Returns:
            A module from images in [0, 1] to images.
        """
        kind = AnnealedDenoiser if annealed else DenoiserAt
        return kind(self, self.check_level(sigma))

    def noise(self, x: Tensor, t: int) -> Tensor:
        """Return the noise in x_t = sqrt(a) x0 + sqrt(1 - a) noise, with a = alphas_cumprod[t] and x0 in [-1, 1]."""
        sigma = self.sigmas[t]
        coefficients = self.preconditioning.at(sigma)
        x = x * math.sqrt(1 + sigma**2)
        return ((1 - coefficients.skip) * x - coefficients.out * self._predicted(x, coefficients)) / sigma

    @cached_property
    def sigmas(self) -> list[float]:
        """The noise levels of the model's time steps; without such, 1000 levels at equal ratios."""
        if isinstance(self.preconditioning, VariancePreserving):
            return [float(sigma) for sigma in self.preconditioning.sigmas]
        low, high = math.log(self.preconditioning.lowest), math.log(self.preconditioning.highest)
        return [math.exp(low + (high - low) * t / (TIME_STEPS - 1)) for t in range(TIME_STEPS)]

    @cached_property
    def alphas_cumprod(self) -> Tensor:
        """How much of the image is left, as a variance, at each time step."""
        return torch.tensor(alphas(self.sigmas), dtype=torch.float64)

    @cached_property
    def weights_hash(self) -> str:
        digest = hashlib.sha256()
        for name, weights in self._weights().items():
            digest.update(name.encode() + weights.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def hash(self) -> str:
        """Tell this denoiser from others: weights, the network's settings, noise schedule and kind of prediction."""
        predict = repr(getattr(self.predict, "keywords", None))
        identity = repr([self.weights_hash, sorted(self._settings().items()), repr(self.preconditioning), predict])
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        """Name the model as records do: one text for each denoiser that computes something else."""
        return f"{self.name}, {self.hash}"

    def check_level(self, sigma: Any) -> float:
        """Refuse a noise level that the model was not trained for."""
        low, high = self.preconditioning.lowest, self.preconditioning.highest
        if not is_number(sigma) or not low <= float(sigma) <= high:
            raise InputError(
                f"The noise level is a number from {low:.3g} to {high:.3g}, the levels of {self.name}; got {sigma!r}."
            )
        return float(sigma)

    def check_shape(self, *shape: int) -> None:
        """Refuse images of another size than the model's."""
        if shape == self.shape:
            return
        own, given = ("x".join(map(str, one)) for one in (self.shape, shape))
        advice = f"Load them in its size, for example with ?size={self.shape[1]}."
        if shape[0] != self.shape[0] or len(shape) != 3:
            kinds = {1: "grey images", 3: "colour images"}
            advice = f"Give it {kinds.get(self.shape[0], f'images of {self.shape[0]} channels')}."
        raise InputError(f"The denoiser {self.name} takes images of {own}; these are {given}. {advice}")

    @torch.no_grad()
    def check(self) -> None:
        """Try the model on a grey image; refuse one that returns something else than finite images."""
        weights = [w for w in weights_of(self) if w.is_floating_point()]
        self._check_precision(weights)
        grey = torch.zeros(2, *self.space, device=weights[0].device if weights else None)
        try:
            with evaluation_mode(self):
                out = self._predicted(grey, self.preconditioning.at(MIDDLE))
        except InputError:
            raise
        except Exception as error:  # a foreign model may raise anything
            reason = first_line(error).rstrip(".")
            raise InputError(f"The denoiser {self.name} cannot be called as f(x, sigma): {reason}.") from None
        self._check_output(out, grey)

    def _check_output(self, out: Any, grey: Tensor) -> None:
        if not isinstance(out, Tensor) or out.shape != grey.shape:
            given = "x".join(map(str, out.shape)) if isinstance(out, Tensor) else type(out).__name__
            raise InputError(
                f"The denoiser {self.name} returned {given} for images of {'x'.join(map(str, grey.shape))}; "
                "it must return the clean images, of the same shape."
            )
        if not bool(out.isfinite().all()):
            raise InputError(f"The denoiser {self.name} returned NaN or infinite values for a grey image.")

    def _check_precision(self, weights: list[Tensor]) -> None:
        if any(w.dtype not in (torch.float32, torch.float64) for w in weights):
            raise InputError(
                f"The weights of the denoiser {self.name} are {weights[0].dtype}; "
                "take them in full precision: denoiser.float()."
            )
        if not all(bool(w.isfinite().all()) for w in weights):
            raise InputError(f"Some weights of the denoiser {self.name} are not finite.")

    def _predicted(self, x: Tensor, coefficients: Coefficients) -> Tensor:
        kind = torch.long if getattr(self.preconditioning, "whole_steps", False) else x.dtype
        time = coefficients.time
        if isinstance(time, Tensor):
            time = time.to(kind).view(1)  # broadcasts over the images
        else:
            time = torch.full((1,), time, dtype=kind, device=x.device)
        return self.predict(self.network, coefficients.scale * x, time)

    def _settings(self) -> dict[str, Any]:
        config = getattr(self.network, "config", getattr(self.network, "settings", None))
        return {k: v for k, v in dict(config or {}).items() if not k.startswith("_")}

    def _weights(self) -> dict[str, Tensor]:
        return self.network.state_dict() if isinstance(self.network, nn.Module) else {}


def _read_shape(shape: Any) -> tuple[int, int, int]:
    """Read channels, height and width of images."""
    if not isinstance(shape, list | tuple) or len(shape) != 3 or not all(is_whole(size, 1) for size in shape):
        raise InputError(
            f"shape is channels, height and width of the images, as (3, 32, 32) for example; got {shape!r}."
        )
    channels, height, width = map(int, shape)
    return channels, height, width


class DenoiserAt(nn.Module):
    """A denoiser at one noise level: an autoencoder from images in [0, 1] to images in [0, 1]."""

    admm_origin = 0.5  # zero in the model's own range [-1, 1]: its input must not be half black

    def __init__(self, denoiser: Denoiser, sigma: float) -> None:
        super().__init__()
        self.denoiser, self.sigma = denoiser, sigma

    def forward(self, images: Tensor) -> Tensor:
        self.denoiser.check_shape(*images.shape[1:])
        return self.denoiser(images, self.sigma)

    def get_extra_state(self) -> str:
        """Return what tells this autoencoder from others with the same weights."""
        return f"{self.denoiser.hash} at {self.sigma!r}"

    def set_extra_state(self, state: str) -> None:
        """Ignore it: the noise level is an argument, not a weight."""

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}"


class AnnealedDenoiser(DenoiserAt):
    """A denoiser whose noise level falls along the steps of ADMM; every other call is at sigma."""

    @property
    def ends(self) -> tuple[float, float]:
        """The noise levels of the first and the last step: `ANNEALED`, within the levels of the model."""
        low, high = self.denoiser.preconditioning.lowest, self.denoiser.preconditioning.highest
        first, last = (min(max(level, low), high) for level in ANNEALED)
        return first, last

    def forward(self, images: Tensor, settings: Tensor | None = None) -> Tensor:
        """Denoise at sigma, or with a row of the schedule."""
        if settings is None:
            return super().forward(images)
        self.denoiser.check_shape(*images.shape[1:])
        return self.denoiser(images, Coefficients(*settings.unbind()))

    def admm_schedule(self, steps: int) -> Tensor:
        """Tabulate the coefficients of each step, at noise levels of equal ratios, and at last those of sigma."""
        first, last = self.ends
        levels = np.geomspace(first, last, steps).clip(last, first)  # rounding may leave the model's levels
        return self.denoiser.coefficients([*levels.tolist(), self.sigma])

    def get_extra_state(self) -> str:
        return f"{super().get_extra_state()}, annealed from {self.ends[0]!r} to {self.ends[1]!r}"
