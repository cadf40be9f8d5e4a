"""A reference for diffusion models: the audited model itself as an inpainter that knows the mask (DDNM)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from torch import Tensor

from recollect.devices.precision import module_of
from recollect.engine import Active, Autoencoder, Runtime
from recollect.errors import InputError
from recollect.methods.base import Method
from recollect.methods.ddnm import DDNM, STRONGEST, NoisePredictor, time_steps


@dataclass(frozen=True)
class DDNMOfModel(Method):
    """`DDNM` with the audited diffusion model as its prior: what the model restores as an inpainter.

    `DDNMOfModel()(denoiser.at(sigma), y, truth)` returns a `Recovery`.

    Args:
        steps: Number of time steps.
        eta: Share of fresh noise, from 0 to 1.
        spacing: `even` or `quadratic`.
        draws: Restorations of an image, whose mean is taken.
        clip: Whether the estimate of the clean image is kept in its range at every step.
        seed: Seed of the noise.

    Examples:
        >>> import recollect
        >>> from recollect.diffusion import Denoiser
        >>> from recollect.methods import DDNMOfModel
        >>> images = recollect.load("photos?count=1&size=8")
        >>> seen = recollect.observe(images, recollect.mask("half", images.shape))
        >>> model = Denoiser.of(lambda x, sigma: x * 0, images.shape)
        >>> DDNMOfModel(steps=3, draws=1)(model.at(0.2), seen.y, seen.truth).estimate.shape
        torch.Size([1, 3, 8, 8])
    """

    steps: int = STRONGEST["steps"]
    eta: float = STRONGEST["eta"]
    spacing: str = STRONGEST["spacing"]
    draws: int = STRONGEST["draws"]
    clip: bool = False
    seed: int = 42

    name: ClassVar[str] = "ddnm-model"
    summary: ClassVar[str] = "a reference, not an attack: the audited diffusion model inpaints, with the mask known"
    label: ClassVar[str] = "DDNM with the audited model (mask given)"
    knows_truth: ClassVar[bool] = True
    only_erasures: ClassVar[bool] = True
    only_diffusion: ClassVar[bool] = True
    headline_subject: ClassVar[str] = "the model as an inpainter that knows which pixels were erased"
    colour: ClassVar[str | None] = "teal"
    order: ClassVar[int] = 9

    @staticmethod
    def most_passes(limit: int, steps: int) -> int:
        return limit * steps * STRONGEST["draws"]

    @contextmanager
    def prepared(self, f: Autoencoder | None, y: Tensor, chunk: int | None) -> Iterator[Runtime]:
        """Prepare the denoiser of the audited model, as `DDNM` prepares its prior."""
        prior = getattr(module_of(f), "denoiser", None)
        if prior is None:
            raise InputError(f"{self.name} is for diffusion models: another model cannot be sampled.")
        with self._with(prior).prepared(f, y, chunk) as runtime:
            yield runtime

    def step(self, f: Runtime, batch: Active) -> Active:
        prior: Any = f.network
        evaluations = self.draws * len(time_steps(len(prior.alphas_cumprod), self.steps, self.spacing))
        restored = self._with(prior).step(f, batch)
        return replace(restored, steps=restored.steps + evaluations)

    def _with(self, prior: NoisePredictor) -> DDNM:
        return DDNM(prior, **{field.name: getattr(self, field.name) for field in fields(self)})
