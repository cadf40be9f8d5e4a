"""Check the stated range of values: the right one lets a model reproduce training images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from recollect.diffusion import DenoiserAt
from recollect.errors import InputError
from recollect.models.adapt import Adaptation, Adapted, Part
from recollect.models.outputs import call_model
from recollect.models.value_range import Scaling

HOPELESS = 2e-3  # a reconstruction error above this (27 dB) calls for a search of other ranges
BETTER = 10  # one that is not hopeless and fits this many times better is no accident

PIXELS = Scaling.of_range(0, 1)
COMMON = (  # mean and std of ImageNet, CIFAR-10 and MNIST
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    ((0.1307,), (0.3081,)),
)


def reconstruction_error(out: Tensor, pixels: Tensor) -> float:
    return float((out.double() - pixels.double()).square().mean())


def check_range(model: Any, pixels: Tensor, mse: float, stated: tuple[Part, ...] = ()) -> str:
    """Raise an error if the assumed range is hopeless and another fits far better.

    A range that the user stated holds: the doubt is returned as a sentence. The model x + g(x) with a bounded g, for
    example, reproduces anything in grey levels from 0 to 255, and nothing is wrong with its own range.
    """
    if not _is_in_doubt(model, mse):
        return ""
    best, other, how = _best_range(model, pixels, mse)
    if not (best <= HOPELESS and best * BETTER < mse):
        return ""
    options = other.into.words
    if other.into != other.back:
        options = f"{other.into.words} with {other.back.words}"
    doubt = (
        f"as given, the model reproduces these images with an error (MSE) of {mse:.2g}, and with {options} it is "
        f"{best:.2g}"
    )
    if _contradicts(other, how, (*how.stated, *stated)):
        return f"The stated range of values is used although another fits far better: {doubt}."
    raise InputError(
        f"The range of values looks wrong: {doubt}; set that, or state {how.into.words} to keep the range."
    )


def _best_range(model: Any, pixels: Tensor, mse: float) -> tuple[float, Adaptation, Adaptation]:
    """Find the range with the smallest error: that error, the adaptation, and the one in use."""
    inner, how = (model.inner, model.how) if isinstance(model, Adapted) else (model, Adaptation())
    device = model.device if isinstance(model, Adapted) else None
    tried = [(mse, how)]
    for other in _alternatives(how, how.channels or pixels.shape[1]):
        error = _error_under(Adapted(inner, other, device), pixels)
        if error is not None:
            tried.append((error, other))
    return (*min(tried, key=lambda pair: pair[0]), how)


def _contradicts(other: Adaptation, how: Adaptation, stated: tuple[Part, ...]) -> bool:
    """Return whether another adaptation changes a range that the user stated."""
    return ("input" in stated and other.into != how.into) or ("output" in stated and other.back != how.back)


def _is_in_doubt(model: Any, mse: float) -> bool:
    """Return whether other ranges are worth a try; a denoiser states its own."""
    return mse > HOPELESS and not isinstance(model, DenoiserAt)


def _alternatives(how: Adaptation, channels: int) -> Iterator[Adaptation]:
    """Yield ranges in use: for input and output alike, for one of them alone, and an output of a sigmoid."""
    scalings = [PIXELS, Scaling.of_range(-1, 1), Scaling.of_range(0, 255)]
    scalings += [Scaling.of_statistics(*s) for s in COMMON if len(s[0]) in (1, channels)]
    plain_output = Scaling.of_range(0, 1, "output_range")
    for scaling in scalings:
        yield replace(how, into=scaling, back=scaling)
        if not scaling.plain:
            yield replace(how, into=scaling, back=plain_output)
    for low, high in ((-1, 1), (0, 255)):
        yield replace(how, into=PIXELS, back=Scaling.of_range(low, high, "output_range"))


def _error_under(model: Adapted, pixels: Tensor) -> float | None:
    try:
        out = call_model(model, pixels)
    except Exception:  # a range under which it does not run is no alternative
        return None
    if out.shape != pixels.shape or not bool(torch.isfinite(out).all()):
        return None
    return reconstruction_error(out, pixels)
