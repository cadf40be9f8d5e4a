"""The generic baseline: inpainting by a diffusion model that never saw the autoencoder (DDNM, Wang et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from recollect.degradation import Erasure
from recollect.devices.precision import weights_of
from recollect.engine import Active, Autoencoder, Runtime, prepare
from recollect.engine.runtime import check_damaged
from recollect.errors import InputError, check_seed, is_number, is_whole
from recollect.image_values import all_finite, per_image
from recollect.methods.base import Method
from recollect.methods.resizing import Resizing
from recollect.recovery import Stop
from recollect.seeding import own_draws

SPACINGS = ("even", "quadratic")
# Beyond DDNM's defaults, at twice the cost: the best that a generic prior can do is what an audit asks for.
STRONGEST: Mapping[str, Any] = {"steps": 50, "eta": 1.0, "spacing": "quadratic", "draws": 4}


class NoisePredictor(Protocol):
    """What DDNM needs of a diffusion model."""

    shape: tuple[int, int, int]  # channels, height, width of its images

    @property
    def alphas_cumprod(self) -> Tensor:
        """How much of the image is left, as a variance, at each time step of its training."""

    def noise(self, x: Tensor, t: int) -> Tensor:
        """e(x_t, t): the noise in images x_t, whose clean values lie in [-1, 1], at time step t."""


@torch.no_grad()
def ddnm(
    e: NoisePredictor,
    y: Tensor,
    keep: Tensor,
    draws: Sequence[np.random.Generator],
    *,
    steps: int,
    eta: float,
    spacing: str = "even",
    clip: bool = False,
) -> Tensor:
    """Restore images y in [-1, 1], known where `keep` is, from pure noise drawn by `draws`, one an image."""
    size = Resizing(y.shape[2:], e.shape[1:], y)
    times = time_steps(len(e.alphas_cumprod), steps, spacing)
    a = [*e.alphas_cumprod[times].tolist(), 1.0]
    x = _normal(draws, (y.shape[1], *e.shape[1:]), y)
    x0 = torch.zeros_like(x)
    for i, t in enumerate(times):
        noise = e.noise(x, t)
        x0 = (x - (1 - a[i]) ** 0.5 * noise) / a[i] ** 0.5
        x0 = x0.clamp(-1, 1) if clip else x0
        x0 = x0 - size.up(torch.where(keep, size.down(x0) - y, 0))  # back to what is known of the image
        if a[i + 1] < 1:  # else x is x0 itself, and no noise is needed
            fresh = _normal(draws, x.shape[1:], y)
            x = a[i + 1] ** 0.5 * x0 + (1 - a[i + 1]) ** 0.5 * (eta * fresh + (1 - eta**2) ** 0.5 * noise)
    return size.down(x0)


def time_steps(length: int, steps: int, spacing: str = "even") -> list[int]:
    """Choose time steps of a prior that was trained on `length`, the noisiest first.

    They are evenly spaced, or quadratically: closer together the less noise is left, and fewer where two coincide.
    """
    chosen = [length * i // steps for i in range(steps)]
    if spacing == "quadratic":
        chosen = list({round(t**2 / max(1, chosen[-1])) for t in chosen})
    return sorted(chosen, reverse=True)


def _normal(draws: Sequence[np.random.Generator], shape: Sequence[int], like: Tensor) -> Tensor:
    """Each image's own next normal draw: the same on every device and in every batch."""
    drawn = np.stack([rng.standard_normal(tuple(shape), dtype=np.float32) for rng in draws])
    return torch.from_numpy(drawn).to(like)


@dataclass(frozen=True)
class DDNM(Method):
    """Denoising diffusion null-space restoration with the true mask; the autoencoder is never called.

    Images smaller than the prior's are restored at the prior's size and scaled back. The defaults are those of DDNM.
    The mean of some draws of 50 steps with `eta=1` and `spacing="quadratic"` is nearer to the truth.

    `DDNM(prior)(None, y, truth)` returns a `Recovery`.

    Args:
        prior: A diffusion model, as `recollect.diffusion.open_denoiser` and `bundled` give.
        steps: Number of time steps.
        eta: Share of fresh noise, from 0 to 1.
        spacing: `even`, or `quadratic`: denser at low noise.
        draws: Restorations of an image, whose mean is taken.
        clip: Whether the estimate of the clean image is kept in its range at every step.
        seed: Seed of the noise.

    Examples:
        >>> import recollect
        >>> from recollect.diffusion import Denoiser
        >>> from recollect.methods import DDNM
        >>> images = recollect.load("photos?count=2&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> prior = Denoiser.of(lambda x, sigma: x * 0, images.shape)
        >>> DDNM(prior, steps=5)(None, seen.y, seen.truth).estimate.shape
        torch.Size([2, 3, 8, 8])
    """

    prior: NoisePredictor
    steps: int = 100
    eta: float = 0.85
    spacing: str = "even"  # of the time steps, or quadratic: most of them where little noise is left
    draws: int = 1  # restorations of an image, whose mean is taken
    clip: bool = False  # keep the estimate of the clean image in its range at every step
    seed: int = 42

    name: ClassVar[str] = "ddnm"
    summary: ClassVar[str] = "generic restoration: a diffusion model that never saw the audited one and knows the mask"
    label: ClassVar[str] = "DDNM (never sees the model)"
    knows_truth: ClassVar[bool] = True
    sees_model: ClassVar[bool] = False
    companion: ClassVar[str] = "biharmonic"
    only_erasures: ClassVar[bool] = True
    only_images: ClassVar[bool] = True
    headline_subject: ClassVar[str] = (
        "a general diffusion model that never saw this one and knows which pixels were erased"
    )
    colour: ClassVar[str | None] = "pink"
    order: ClassVar[int] = 7

    def __post_init__(self) -> None:
        self._check_prior()
        if not is_whole(self.draws, 1):
            raise InputError(f"draws is a number of restorations, 1 or more; got {self.draws!r}.")
        if not is_number(self.eta) or not 0 <= self.eta <= 1:
            raise InputError(f"eta is the share of fresh noise, from 0 to 1; got {self.eta!r}.")
        check_seed(self.seed)

    def _check_prior(self) -> None:
        if not all(hasattr(self.prior, name) for name in ("noise", "alphas_cumprod", "shape")):
            raise InputError(
                f"A prior is what recollect.diffusion.open_denoiser gives, not a {type(self.prior).__name__}: "
                "it has a shape, alphas_cumprod and noise(x, t)."
            )
        if getattr(self.prior, "latent", False):
            raise InputError("A prior restores pixels, and this model denoises latents; open a model of images.")
        length = len(self.prior.alphas_cumprod)
        if not is_whole(self.steps, 1) or self.steps > length:
            raise InputError(f"steps is a number from 1 to the prior's {length} time steps, got {self.steps!r}.")
        if self.spacing not in SPACINGS:
            raise InputError(f"There is no spacing {self.spacing!r}; choose from {', '.join(SPACINGS)}.")
        first = time_steps(length, self.steps, self.spacing)[0]
        if not float(self.prior.alphas_cumprod[first]) > 0:
            raise InputError(f"At time step {first} the prior's images are noise alone, of which no image can be read.")

    @classmethod
    def for_audit(cls, **settings: Any) -> Self:
        return super().for_audit(**{**STRONGEST, **settings})

    @contextmanager
    def prepared(self, f: Autoencoder | None, y: Tensor, chunk: int | None) -> Iterator[Runtime]:
        """Prepare the prior; the autoencoder is never called, which is the point of this method."""
        check_damaged(y)
        self.check_shape(*y.shape[1:])
        if self._blank(y).dtype not in (torch.float32, torch.float64):
            raise InputError(f"The prior computes in {self._blank(y).dtype}; take it in full precision: prior.float().")
        with prepare(partial(self.prior.noise, t=0), self._blank(y), chunk, accelerated=False) as runtime:
            yield runtime

    def step(self, f: Runtime, batch: Active) -> Active:
        y, truth = batch.estimate, batch.degradation
        assert isinstance(truth, Erasure)
        known = (2 * y - 1).to(self._blank(y).dtype)
        restore = partial(ddnm, steps=self.steps, eta=self.eta, spacing=self.spacing, clip=self.clip)
        seeds = range(self.seed, self.seed + self.draws)
        drawn = [restore(self.prior, known, truth.keep, list(own_draws(y, seed))) for seed in seeds]
        x = (torch.stack(drawn).mean(0).to(y.dtype) + 1) / 2
        finite = all_finite(x)
        x = torch.where(per_image(finite, x), x, y)
        return replace(
            batch,
            estimate=truth.prox(x, y, 0.0),  # kept values exactly as they are
            rounds=batch.rounds + 1,
            stop=torch.where(finite, Stop.DONE, Stop.DIVERGED),
        )

    def _blank(self, y: Tensor) -> Tensor:
        """As many images as y has, of the prior's size and in its precision; costs no memory."""
        dtype = next((w.dtype for w in weights_of(self.prior) if w.is_floating_point()), y.dtype)
        return torch.zeros(1, dtype=dtype, device=y.device).expand(len(y), *self.prior.shape)

    def check_shape(self, channels: int, height: int, width: int) -> None:
        """Refuse images that the prior cannot restore."""
        own_channels, own_height, own_width = self.prior.shape
        if channels != own_channels:
            kinds = {1: "grey images", 3: "colour images"}
            given, wanted = (kinds.get(n, f"images of {n} channels") for n in (channels, own_channels))
            raise InputError(f"The prior knows {wanted} and was given {given}; open a prior for {given}.")
        if height > own_height or width > own_width:
            raise InputError(
                f"The images are {width}x{height} and the prior knows {own_width}x{own_height}; images are "
                "scaled up to a prior and never down, so open a prior of at least their size."
            )
