"""Check how a model is adapted: the right range, layout and output let it reproduce training images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recollect.diffusion import DenoiserAt
from recollect.errors import InputError
from recollect.models.adapt import Adapted
from recollect.models.adaptation import LAYOUTS, Adaptation, Part
from recollect.models.outputs import call_model
from recollect.models.value_range import Scaling
from recollect.models.wording import ends_in_sigmoid, option, with_sigmoid

HOPELESS = 2e-3  # a reconstruction error above this (27 dB) calls for a search of other ranges
BETTER = 10  # one that is not hopeless and fits this many times better is no accident

FAR_BELOW_GREY = 0.25  # of the error of one grey for all pixels

PIXELS, PLAIN_OUTPUT = Scaling.of_range(0, 1), Scaling.of_range(0, 1, "output_range")
COMMON = (  # mean and std of ImageNet, CIFAR-10 and MNIST
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    ((0.1307,), (0.3081,)),
)


def reconstruction_error(out: Tensor, pixels: Tensor) -> float:
    return float((out.double() - pixels.double()).square().mean())


def check_range(model: Any, pixels: Tensor, mse: float, stated: tuple[Part, ...] = (), apart: float = 0.0) -> str:
    """Raise an error if the assumed range, layout or output is hopeless and another fits far better.

    What the user stated holds: the doubt is returned as a sentence. The model x + g(x) with a bounded g, for example,
    reproduces anything in grey levels from 0 to 255, and nothing is wrong with its own range. Of a model that draws
    random numbers two answers are `apart` (MSE), and half of that is in its error, whatever its range.
    """
    by_range = mse - apart / 2
    if not _is_in_doubt(model, by_range):
        return ""
    adapted = Adapted.of(model)
    best, other = _best_adaptation(adapted, pixels, mse)
    if not (best <= _good_enough(pixels, mse) and best * BETTER < by_range):
        return ""
    changes = _changes(adapted.how, other)
    chance = f"two of the model's answers for the same images differ by an MSE of {apart:.2g}; " if apart else ""
    doubt = (
        f"{chance}as given, the model reproduces these images with an error (MSE) of {mse:.2g}, and with "
        f"{' and '.join(change.other for change in changes)} it is {best:.2g}"
    )
    wrong = " and the ".join(change.what for change in changes)
    if _contradict(changes, (*adapted.how.stated, *stated)):
        return f"The stated {wrong} is used although another fits far better: {doubt}."
    keep = " and ".join(change.present for change in changes)
    verb = "looks" if len(changes) == 1 else "look"
    raise InputError(f"The {wrong} {verb} wrong: {doubt}; set that, or state {keep} to keep it.")


class Change(NamedTuple):
    """One point in which another adaptation differs from the one in use."""

    what: str
    other: str  # the options that ask for it
    present: str  # the options that keep what is in use
    parts: tuple[Part, ...]  # what the user may have stated that it contradicts


def _contradict(changes: list[Change], stated: tuple[Part, ...]) -> bool:
    return any(part in stated for change in changes for part in change.parts)


def _changes(how: Adaptation, other: Adaptation) -> list[Change]:
    changes = []
    if other.layout != how.layout:
        changes.append(Change("layout", option("layout", other.layout), option("layout", how.layout), ("layout",)))
    if other.output != how.output:
        keep = option("output_range", "0,1")
        changes.append(Change("output", option("output", other.output), keep, ("output",)))
        how = replace(how, back=other.back)  # a sigmoid brings its own range along
    if other.into != how.into:
        options = other.into.words
        if other.into != other.back and other.output == how.output:
            options = f"{other.into.words} with {other.back.words}"
        parts: tuple[Part, ...] = ("input",) if other.back == how.back else ("input", "output")
        changes.append(Change("range of values", options, how.into.words, parts))
    elif other.back != how.back:
        changes.append(Change("range of the output", other.back.as_output, how.back.as_output, ("output",)))
    return changes


def _best_adaptation(model: Adapted, pixels: Tensor, mse: float) -> tuple[float, Adaptation]:
    """Find the adaptation with the smallest error, and of nearly equal ones that with the fewest changes."""
    tried = [(mse, model.how)]
    for other in _alternatives(model.how, model.how.channels or pixels.shape[1]):
        error = _error_under(model.under(other), pixels)
        if error is not None:
            tried.append((error, other))
    smallest = min(error for error, _ in tried)
    nearly_equal = [(error, other) for error, other in tried if error <= 2 * smallest]
    return min(nearly_equal, key=lambda pair: (len(_changes(model.how, pair[1])), pair[0]))


def _good_enough(pixels: Tensor, mse: float) -> float:
    """Return the error that calls for another adaptation.

    A model that does worse than one grey for all pixels is not understood. An error far below that of the grey is then
    enough, as a variational autoencoder has it. It is also needed: in grey levels from 0 to 255 every small output is
    black, and near every pixel of dark images that are nearly constant.
    """
    grey = float(pixels.double().var())
    return grey * FAR_BELOW_GREY if mse > grey else HOPELESS


def _is_in_doubt(model: Any, mse: float) -> bool:
    """Return whether other ranges are worth a try; a denoiser states its own."""
    return mse > HOPELESS and not isinstance(model, DenoiserAt)


def _alternatives(how: Adaptation, channels: int) -> Iterator[Adaptation]:
    """Yield what is in use, in both layouts: ranges for input and output, for one of them alone, and logits."""
    for layout in LAYOUTS:
        yield from _in_layout(replace(how, layout=layout), channels)


def _in_layout(how: Adaptation, channels: int) -> Iterator[Adaptation]:
    yield how
    scalings = [PIXELS, Scaling.of_range(-1, 1), Scaling.of_range(0, 255)]
    normalized = [Scaling.of_statistics(*s) for s in COMMON if len(s[0]) in (1, channels)]
    for scaling in [*scalings, *normalized]:
        yield replace(how, into=scaling, back=scaling)
        if not scaling.plain:
            yield replace(how, into=scaling, back=PLAIN_OUTPUT)
    for low, high in ((-1, 1), (0, 255)):
        yield replace(how, into=PIXELS, back=Scaling.of_range(low, high, "output_range"))
    if not ends_in_sigmoid(how.output):
        for scaling in dict.fromkeys([how.into, *scalings]):
            yield replace(how, into=scaling, back=PLAIN_OUTPUT, output=with_sigmoid(how.output))


def _error_under(model: Adapted, pixels: Tensor) -> float | None:
    try:
        out = call_model(model, pixels)
    except Exception:  # a range under which it does not run is no alternative
        return None
    if out.shape != pixels.shape or not bool(torch.isfinite(out).all()):
        return None
    return reconstruction_error(out, pixels)
