"""Where memory sits in a diffusion model: recovery, fixed points and membership against the noise level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from recollect.attractors import fixed_point_error
from recollect.auditing.membership import membership
from recollect.degradation import Degradation, mask, observe
from recollect.devices.precision import device_of
from recollect.diffusion import Denoiser
from recollect.diffusion.membership import CHUNK, denoising_loss, secmi
from recollect.images import Images
from recollect.methods import Blind
from recollect.pieces import pieces
from recollect.scoring import Score, mse

LEVELS = (0.05, 0.1, 0.2, 0.4, 0.8)
MASK = "block"
ROUNDS = 4  # enough to tell noise levels apart


@dataclass(frozen=True)
class NoiseLevel:
    """What a denoiser shows at one noise level, for training and for unseen images."""

    sigma: float
    recovered: Mapping[str, float]  # share, approximately
    fixed_point_error: Mapping[str, float]  # median
    denoising_loss: Mapping[str, float]  # mean
    auc: Mapping[str, float | None]  # of membership by the loss, by SecMI and by the fixed-point error

    @property
    def gap(self) -> float | None:
        """How much larger the denoising loss of unseen images is."""
        if "control" not in self.denoising_loss:
            return None
        return self.denoising_loss["control"] - self.denoising_loss["train"]

    def row(self) -> dict[str, Any]:
        """Return plain values for a record or a chart."""
        return {**vars(self), "gap": self.gap}


def memory_by_noise_level(
    denoiser: Denoiser, train: Images, control: Images | None = None, *, sigmas: Sequence[float] = LEVELS,
    mask_name: str = MASK, gamma: float = 0.5, seed: int = 42, chunk: int | None = None,
) -> list[NoiseLevel]:  # fmt: skip
    """Measure a denoiser at each noise level that it knows."""
    sets = {"train": train} if control is None else {"train": train, "control": control}
    low, high = denoiser.preconditioning.lowest, denoiser.preconditioning.highest
    known = [sigma for sigma in sigmas if low <= sigma <= high]
    blind = Blind(gamma, limit=ROUNDS)
    return [_at(denoiser, sigma, sets, mask_name, blind, seed, chunk) for sigma in known]


def _at(
    denoiser: Denoiser, sigma: float, sets: Mapping[str, Images], mask_name: str, blind: Blind, seed: int,
    chunk: int | None,
) -> NoiseLevel:  # fmt: skip
    f = denoiser.at(sigma)
    recovered = {}
    for name, images in sets.items():
        truth = mask(mask_name, images.shape, count=len(images), seed=seed)
        parts = [
            _errors(blind, f, images[rows], truth.of_images(rows), seed, chunk)
            for rows in pieces(len(images), images.shape)
        ]
        recovered[name] = Score(torch.cat(parts).numpy()).approximate.value
    errors = {
        "fixed-point": {name: _fixed_point_errors(f, images) for name, images in sets.items()},
        "loss": {name: denoising_loss(denoiser, images, sigma, seed=seed) for name, images in sets.items()},
        "secmi": {name: secmi(denoiser, images, sigma) for name, images in sets.items()},
    }
    return NoiseLevel(
        sigma,
        recovered,
        {name: float(values.median()) for name, values in errors["fixed-point"].items()},
        {name: float(values.mean()) for name, values in errors["loss"].items()},
        {name: _auc(values) for name, values in errors.items()},
    )


def _errors(blind: Blind, f: Any, images: Images, truth: Degradation, seed: int, chunk: int | None) -> torch.Tensor:
    seen = observe(images, truth, seed=seed)
    return mse(blind(f, seen.y, chunk=chunk).estimate, images.pixels)


def _fixed_point_errors(f: Any, images: Images) -> torch.Tensor:
    device = device_of(f)
    parts = (images[start : start + CHUNK].pixels.to(device) for start in range(0, len(images), CHUNK))
    return torch.cat([fixed_point_error(f, part).cpu() for part in parts])


def _auc(errors: Mapping[str, torch.Tensor]) -> float | None:
    if "control" not in errors:
        return None
    return membership(errors["train"].tolist(), errors["control"].tolist()).auc
