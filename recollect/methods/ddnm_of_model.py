"""A reference for diffusion models: the audited model itself as an inpainter that knows the mask (DDNM)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.precision import module_of
from recollect.engine import Autoencoder
from recollect.errors import InputError
from recollect.methods.base import Method
from recollect.methods.ddnm import DDNM, STRONGEST, time_steps
from recollect.recovery import Recovery


@dataclass(frozen=True)
class DDNMOfModel(Method):
    """`DDNM` with the audited diffusion model as its prior: how well does the model restore as inpainters do?"""

    steps: int = STRONGEST["steps"]
    eta: float = STRONGEST["eta"]
    spacing: str = STRONGEST["spacing"]
    draws: int = STRONGEST["draws"]
    clip: bool = False
    seed: int = 42

    name: ClassVar[str] = "ddnm-model"
    summary: ClassVar[str] = "a reference, not an attack: the audited diffusion model as inpainter, with the mask"
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

    def __call__(self, f: Autoencoder | None, y: Tensor, truth: Degradation | None = None, **options: Any) -> Recovery:
        prior = getattr(module_of(f), "denoiser", None)
        if prior is None:
            raise InputError(f"{self.name} is for diffusion models: another model cannot be sampled.")
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        restored = DDNM(prior, **settings)(f, y, self._check_truth(truth), **options)
        evaluations = self.draws * len(time_steps(len(prior.alphas_cumprod), self.steps, self.spacing))
        return replace(restored, steps=restored.steps + evaluations)
