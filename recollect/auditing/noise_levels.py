"""Where memory sits in a diffusion model: recovery, fixed points and membership against the noise level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from recollect.attractors import fixed_point_error
from recollect.auditing.membership import membership
from recollect.degradation import Degradation, mask, observe
from recollect.devices.precision import device_of
from recollect.diffusion import Denoiser
from recollect.diffusion.membership import RATIO, denoising_loss, secmi
from recollect.images import Images
from recollect.methods import Blind
from recollect.pieces import pieces
from recollect.recovery import Stop
from recollect.scoring import APPROXIMATE, Score, mse

LEVELS = (0.05, 0.1, 0.2, 0.4, 0.8)
MASK = "block"
ROUNDS = 4  # enough to tell noise levels apart
AT_ONCE = 16  # images; a model was given as many when its identity was found


@dataclass(frozen=True)
class NoiseLevel:
    """What a denoiser shows at one noise level, for training and for unseen images; None where that is not finite."""

    sigma: float
    recovered: Mapping[str, float | None]  # share, approximately
    fixed_point_error: Mapping[str, float | None]  # median
    denoising_loss: Mapping[str, float | None]  # mean
    auc: Mapping[str, float | None]  # of membership by the loss, by SecMI and by the fixed-point error

    @property
    def gap(self) -> float | None:
        """How much larger the denoising loss of unseen images is."""
        train, control = (self.denoising_loss.get(name) for name in ("train", "control"))
        return None if train is None or control is None else control - train

    @property
    def is_finite(self) -> bool:
        """Whether everything could be measured."""
        measured = (self.recovered, self.fixed_point_error, self.denoising_loss)
        return all(value is not None for by_set in measured for value in by_set.values())

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
    levels = [_at(denoiser, sigma, sets, mask_name, blind, seed, chunk) for sigma in known]
    if unknown := [f"{level.sigma:g}" for level in levels if not level.is_finite]:
        warnings.warn(
            f"The model {denoiser.name} returned NaN or infinite values at noise level {', '.join(unknown)}. What "
            "could not be measured there is null in the record and missing in the chart.",
            stacklevel=2,
        )
    return levels


def _at(
    denoiser: Denoiser, sigma: float, sets: Mapping[str, Images], mask_name: str, blind: Blind, seed: int,
    chunk: int | None,
) -> NoiseLevel:  # fmt: skip
    f, at_once = denoiser.at(sigma), chunk or AT_ONCE
    recovered = {name: _recovered(blind, f, images, mask_name, seed, chunk) for name, images in sets.items()}
    moved = {name: _fixed_point_errors(f, images, at_once) for name, images in sets.items()}
    losses = {name: denoising_loss(denoiser, images, sigma, seed=seed, chunk=at_once) for name, images in sets.items()}
    errors = {"fixed-point": moved, "loss": losses, "secmi": _secmi_errors(denoiser, sets, sigma, at_once)}
    return NoiseLevel(
        sigma,
        recovered,
        {name: _finite(values.median()) for name, values in moved.items()},
        {name: _finite(values.mean()) for name, values in losses.items()},
        {name: _auc(values) for name, values in errors.items()},
    )


def _recovered(blind: Blind, f: Any, images: Images, mask_name: str, seed: int, chunk: int | None) -> float | None:
    truth = mask(mask_name, images.shape, count=len(images), seed=seed)
    parts = [
        _errors(blind, f, images[rows], truth.of_images(rows), seed, chunk)
        for rows in pieces(len(images), images.shape)
    ]
    return _share(torch.cat(parts))


def _secmi_errors(denoiser: Denoiser, sets: Mapping[str, Images], sigma: float, chunk: int) -> dict[str, torch.Tensor]:
    """Compute them unless the level that SecMI moves images up to is above those of the model."""
    if sigma * RATIO > denoiser.preconditioning.highest:
        return {}
    return {name: secmi(denoiser, images, sigma, chunk=chunk) for name, images in sets.items()}


def _errors(blind: Blind, f: Any, images: Images, truth: Degradation, seed: int, chunk: int | None) -> torch.Tensor:
    seen = observe(images, truth, seed=seed)
    recovery = blind(f, seen.y, chunk=chunk)
    errors = mse(recovery.estimate, images.pixels)
    diverged = (recovery.stop == Stop.DIVERGED).to(errors.device)  # their last finite estimate may be the first guess
    return errors.masked_fill(diverged & (errors >= APPROXIMATE), math.nan)


def _share(errors: torch.Tensor) -> float | None:
    """Compute the share recovered; None where no estimate is finite, of which none could be."""
    return Score(errors.numpy()).approximate.value if bool(errors.isfinite().any()) else None


def _finite(value: torch.Tensor) -> float | None:
    return float(value) if math.isfinite(value) else None


def _fixed_point_errors(f: Any, images: Images, chunk: int) -> torch.Tensor:
    device = device_of(f)
    parts = (images[start : start + chunk].pixels.to(device) for start in range(0, len(images), chunk))
    return torch.cat([fixed_point_error(f, part).cpu() for part in parts])


def _auc(errors: Mapping[str, torch.Tensor]) -> float | None:
    """Compute the AUC; None where no error of a set is known: equal unknowns would be an AUC of 0.5."""
    if "control" not in errors or not all(bool(values.isfinite().any()) for values in errors.values()):
        return None
    return membership(errors["train"].tolist(), errors["control"].tolist()).auc
