"""How close a recovery came: errors per image, and rates with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import InputError, is_number

if TYPE_CHECKING:  # saved errors are read and counted without torch, which takes seconds to import
    from torch import Tensor

ACCURATE = 1e-7  # MSE below this: an accurate recovery (70 dB)
APPROXIMATE = 5e-4  # MSE below this: an approximate one (33 dB)
Z_95 = 1.959963984540054  # standard deviations on each side of a 95% interval
PSNR_CEILING = 150.0  # an error of exactly zero counts as this many dB, so that means stay finite


@dataclass(frozen=True)
class Rate:
    """A share of images, with its 95% Wilson interval.

    Args:
        count: How many.
        total: Of how many.

    Examples:
        >>> from recollect.scoring import Rate
        >>> print(Rate(5, 10))
        50.0% [23.7%, 76.3%]
    """

    count: int
    total: int

    def __post_init__(self) -> None:
        if self.total < 1:
            raise InputError("A rate is a share of at least one image, and there is none here.")

    @property
    def value(self) -> float:
        return self.count / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.count, self.total)

    @property
    def of_total(self) -> str:
        return f"{self.count} of {self.total}"

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} [{low:.1%}, {high:.1%}]"


@dataclass(frozen=True)
class Excess:
    """How much higher one rate is than another, with Newcombe's 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.1%} [{self.low:+.1%}, {self.high:+.1%}]"


def excess(rate: Rate, over: Rate) -> Excess:
    """Compute the difference of two independent rates."""
    (low, high), (over_low, over_high) = rate.interval, over.interval
    difference = rate.value - over.value
    down = math.hypot(rate.value - low, over_high - over.value)
    up = math.hypot(high - rate.value, over.value - over_low)
    return Excess(difference, difference - down, difference + up)


@dataclass(frozen=True, eq=False)
class Score:
    """Per-image mean square errors of a recovery; every other number is derived from them.

    Args:
        mse: The error of each image.

    Examples:
        >>> import torch
        >>> from recollect import Score
        >>> score = Score.of(torch.zeros(2, 3, 8, 8), torch.zeros(2, 3, 8, 8))
        >>> score.accurate.count, score.rate(0.1).value
        (2, 1.0)
    """

    mse: np.ndarray  # float64, one an image

    def __post_init__(self) -> None:
        object.__setattr__(self, "mse", np.asarray(self.mse, dtype=np.float64))

    @classmethod
    def of(cls, estimate: Tensor, original: Tensor) -> Score:
        """Compare estimates with the originals.

        Args:
            estimate: The estimated images.
            original: The original images, in the same shape.

        Returns:
            The score.
        """
        return cls(mse(estimate, original).numpy())

    @classmethod
    def best_of(cls, scores: Sequence[Score]) -> Score:
        """Per image the smallest error of several tries; an error that is not finite is never the smallest."""
        return cls(np.stack([np.nan_to_num(score.mse, nan=np.inf, posinf=np.inf) for score in scores]).min(0))

    @property
    def psnr(self) -> np.ndarray:
        return psnr(self.mse)

    @property
    def mean_psnr(self) -> float:
        return float(self.psnr.mean())

    @property
    def accurate(self) -> Rate:
        return self.rate(ACCURATE)

    @property
    def approximate(self) -> Rate:
        return self.rate(APPROXIMATE)

    def rate(self, threshold: float) -> Rate:
        """Compute the share of images whose MSE is below the threshold."""
        if not is_number(threshold):
            raise InputError(f"A threshold is a mean square error, such as 1e-7; got {threshold!r}.")
        return Rate(int((self.mse < threshold).sum()), len(self.mse))

    def rates(self, thresholds: Sequence[float] | None = None) -> list[Rate]:
        """Compute the rate as a function of the threshold, by default from 1e-3 down to 1e-7."""
        if thresholds is None:
            thresholds = threshold_grid()
        return [self.rate(threshold) for threshold in thresholds]


def mse(estimate: Tensor, original: Tensor) -> Tensor:
    """Mean square error of each image over all its values, in float64."""
    import torch

    for given in (estimate, original):
        if not isinstance(given, torch.Tensor):
            raise InputError(
                f"Errors are between tensors, such as recovery.estimate and images.pixels; got {type(given).__name__}."
            )
    if estimate.shape != original.shape:
        raise InputError(f"Cannot compare {tuple(estimate.shape)} with {tuple(original.shape)}: shapes differ.")
    difference = estimate.to(torch.float64) - original.to(estimate.device, torch.float64)
    return difference.flatten(1).square().mean(1).cpu()


def psnr(mse: np.ndarray) -> np.ndarray:
    """10 log10(1 / MSE) in dB for images in [0, 1], at most PSNR_CEILING."""
    with np.errstate(divide="ignore"):  # of an error of zero
        return np.minimum(-10 * np.log10(np.asarray(mse, dtype=np.float64)), PSNR_CEILING)


def threshold_grid(low: float = 1e-7, high: float = 1e-3, per_decade: int = 10) -> list[float]:
    """Thresholds from high to low, evenly spaced on a logarithmic scale."""
    decades = math.log10(high / low)
    count = round(decades * per_decade)
    return [high * (low / high) ** (i / count) for i in range(count + 1)]


def rounded_percent(share: float) -> str:
    """Write whole percents, but never 0 of something nor 100 of not all."""
    if 0 < share < 0.01:
        return f"{100 * share:.2g}"
    if 0.99 < share < 1:
        return f"{math.floor(1000 * share) / 10:.1f}"
    return f"{100 * share:.0f}"


def percent_range(low: float, high: float, dash: str = "-") -> str:
    """Write an interval of shares in whole percents; a page of its own has a longer dash than a terminal."""
    return f"{rounded_percent(low)}{dash}{rounded_percent(high)}%"


def wilson(count: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Compute the Wilson score interval of a proportion, 95% by default."""
    if total < 1 or not 0 <= count <= total:
        raise InputError(f"A rate is a count out of a total of at least one, got {count} of {total}.")
    share = count / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    low, high = (centre - spread) / scale, (centre + spread) / scale
    if count == 0:
        low = 0.0  # exactly, also after rounding
    if count == total:
        high = 1.0
    return low, high


@dataclass(frozen=True, eq=False)
class MaskAgreement:
    """Per image, how an estimated mask agrees with the true one."""

    accuracy: Tensor  # share of values estimated right
    erased_iou: Tensor  # intersection over union of the erased values; 1 where neither erases any


def mask_agreement(estimated: Tensor, true: Tensor) -> MaskAgreement:
    """Compare masks of kept values (True: kept) value by value.

    Args:
        estimated: Estimated masks, such as `recovery.degradation.keep`.
        true: True masks, such as `observation.truth.keep`.

    Returns:
        Per image the share of values estimated right, and the intersection over union of the erased values.

    Examples:
        >>> import torch
        >>> from recollect import mask_agreement
        >>> true = torch.tensor([[True, False, False, False]])
        >>> mask_agreement(torch.tensor([[True, False, False, True]]), true).accuracy
        tensor([0.7500], dtype=torch.float64)
    """
    import torch

    if not isinstance(estimated, torch.Tensor) or not isinstance(true, torch.Tensor):
        kinds = f"{type(estimated).__name__} and {type(true).__name__}"
        raise InputError(f"Masks are boolean tensors, such as the `keep` of an Erasure; got {kinds}.")
    if estimated.dtype != torch.bool or true.dtype != torch.bool:
        raise InputError(f"Masks are boolean (True: kept), got {estimated.dtype} and {true.dtype}.")
    try:
        true = true.to(estimated.device).expand_as(estimated)
    except RuntimeError:
        shapes = f"{tuple(estimated.shape)} with {tuple(true.shape)}"
        raise InputError(f"Cannot compare masks of shapes {shapes}.") from None
    lost, truly_lost = ~estimated.flatten(1), ~true.flatten(1)
    either = (lost | truly_lost).sum(1)
    both = (lost & truly_lost).sum(1)
    iou = torch.where(either > 0, both.double() / either.clamp(min=1), 1.0)
    return MaskAgreement((lost == truly_lost).double().mean(1).cpu(), iou.cpu())
