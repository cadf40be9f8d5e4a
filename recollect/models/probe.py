"""Try a model on a few images before a long audit: what would go wrong later is said now, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from recollect.counting import with_article
from recollect.devices.precision import evaluation_mode, weights_of
from recollect.errors import InputError, first_line, is_out_of_memory
from recollect.images import KINDS, Images
from recollect.models.adapt import Adapted, other_form
from recollect.models.adaptation import Adaptation, Part
from recollect.models.batch_check import batch_influence
from recollect.models.outputs import call_model
from recollect.models.range_check import check_range, reconstruction_error
from recollect.models.wording import option, size

COUNT = 16  # images tried; enough to tell ranges apart
SMALLER = (16, 8, 4, 2, 1)  # numbers of images that are tried where so many are too many
FORM = ("channels", "layout", "flat")  # options on the form of images, which a user may state wrongly
PLAIN = Adaptation()


@dataclass(frozen=True)
class Probe:
    """What a few images show about a model."""

    mse: float  # mean reconstruction error over the images tried
    deterministic: bool  # the same images twice gave the same output, bit for bit
    images: int  # how many were tried
    batch_influence: float | None = 0.0  # share by which batch-mates change an output; None if not deterministic
    range_doubt: str = ""  # a range that fits far better than the stated one, in a sentence


def probe_model(model: Any, images: Images | Tensor, *, count: int = COUNT, stated: tuple[Part, ...] = ()) -> Probe:
    """Run a model on the first images, before a long audit.

    An `InputError` says what does not fit and which option to set.

    Args:
        model: The model.
        images: Images to try it on.
        count: The largest number of images.
        stated: The ranges that the user gave, if the model does not record them.

    Returns:
        The reconstruction error, and whether the model is deterministic.

    Examples:
        >>> import recollect
        >>> from recollect.models import probe_model
        >>> probe_model(lambda x: x, recollect.load("photos?count=2&size=8")).mse
        0.0
    """
    if not isinstance(images, Images):
        images = Images(images[:count])
    pixels = images[:count].pixels.clone()
    if not callable(model):
        raise InputError(
            f"A model is an nn.Module or a function from images to images; got {with_article(type(model).__name__)}."
        )
    with torch.no_grad(), evaluation_mode(model):
        pixels = pixels.to(_device_of(model))
        _check_dtype(model, pixels)
        _check_colour(model, pixels)
        out = _run(model, pixels)
        _check_finite(_check_form(out, pixels))
        mse = reconstruction_error(out, pixels)
        again = _run(model, pixels)
        deterministic = bool(torch.equal(out, again))
        apart = 0.0 if deterministic else reconstruction_error(out, again)
        range_doubt = check_range(model, pixels, mse, stated, apart)
        run_any_number = partial(_run_batch, model, _usual_batch(model, pixels))
        influence = batch_influence(run_any_number, pixels) if deterministic else None
    return Probe(mse, deterministic, len(pixels), influence, range_doubt)


def _run(model: Any, pixels: Tensor) -> Tensor:
    """Return the model's images, or raise an error that says what it would take."""
    try:
        return call_model(model, pixels)
    except InputError:
        raise
    except Exception as error:  # a foreign model may raise anything
        if is_out_of_memory(error):
            raise
        items = f"{KINDS[pixels.ndim - 1]} of {size(pixels.shape[1:])}"
        hint = _not_of_images_alone(error) or _what_works(model, pixels)
        raise InputError(f"The model cannot take {items} ({first_line(error)}); {hint}") from error


def _not_of_images_alone(error: Exception) -> str:
    """Say what a model needs whose call is another than that of an autoencoder; nothing of other errors."""
    lacks_argument = isinstance(error, TypeError) and "positional argument" in str(error)
    if lacks_argument or "is missing value for argument" in str(error):  # the latter of TorchScript
        return "an autoencoder is called with images alone: give a function of images that calls it."
    if isinstance(error, NotImplementedError) and '"forward"' in str(error):
        return "it has no forward: give a function of images that calls the part that reconstructs."
    return ""


def _usual_batch(model: Any, pixels: Tensor) -> int:
    """Return how many of these images the model is given at once."""
    most = model.most if isinstance(model, Adapted) else None
    return min(len(pixels), most or len(pixels))


def _run_batch(model: Any, usual: int, pixels: Tensor) -> Tensor:
    """Run another number of images than usual: recovery does, as images finish at different times."""
    try:
        return _check_form(call_model(model, pixels), pixels)
    except Exception as error:  # a foreign model may raise anything
        raise InputError(
            f"The model takes {usual} images at once and fails with {len(pixels)} ({first_line(error)}); set "
            f"{option('batch', usual)}, so that it is always given {usual}."
        ) from error


def _what_works(model: Any, pixels: Tensor) -> str:
    """Say the first change of one option under which the model runs."""
    usual = _usual_batch(model, pixels)
    sizes = [count for count in SMALLER if count < usual and _runs(model, pixels[:count])]
    if sizes == [1]:
        return f"it takes one image at a time: set {option('batch', 1)}."
    if 1 in sizes:
        return f"it takes {max(sizes)} images at once: set {option('chunk', max(sizes))}."
    if sizes:
        return f"it takes {max(sizes)} images at once and not one: set {option('batch', max(sizes))}."
    for changes in _changes_to_try(model, pixels):
        if _runs(model, pixels[:1], **changes):
            return f"{_advice(model, changes)}, with which it runs."
    if pixels.ndim != 4:
        return f"check the shape of the {KINDS[pixels.ndim - 1]}, and the batch option (a fixed number of them)."
    return (
        "check the size of the images (a source takes ?size=N), the channels option (1 or 3) "
        "and the batch option (a fixed number of images)."
    )


def _changes_to_try(model: Any, pixels: Tensor) -> list[dict[str, Any]]:
    """List other options: without one of those that were stated, without all of them, and with others."""
    without = {name: getattr(PLAIN, name) for name in _stated_form(model)}
    changes = [*({name: value} for name, value in without.items()), without]
    last: dict[str, Any] = {"layout": "nhwc"}
    if pixels.ndim == 4:
        channels = {"channels": 4 - pixels.shape[1]}
        changes += [channels, last, {**channels, **last}]
    if pixels.ndim == 3:
        changes.append(last)
    return [*changes, {"flat": True}]


def _stated_form(model: Any) -> dict[str, Any]:
    """List the options on the form of images that differ from what holds if they are left out."""
    how = Adapted.of(model).how
    return {name: getattr(how, name) for name in FORM if getattr(how, name) != getattr(PLAIN, name)}


def _advice(model: Any, changes: dict[str, Any]) -> str:
    """Say which options to set, or to leave out."""
    stated = _stated_form(model)
    left_out = [option(name, stated[name]) for name, value in changes.items() if value == getattr(PLAIN, name)]
    if left_out:
        return f"leave {' and '.join(left_out)} out"
    return f"set {' and '.join(option(name, value) for name, value in changes.items())}"


def _runs(model: Any, pixels: Tensor, **changes: Any) -> bool:
    try:
        return call_model(Adapted.of(model).but(**changes), pixels).shape == pixels.shape
    except Exception:  # a foreign model may raise anything; here only success matters
        return False


def _check_form(out: Tensor, pixels: Tensor) -> Tensor:
    """Refuse an output that has not the shape, dtype and device of the images."""
    kind = KINDS[pixels.ndim - 1]
    if not out.ndim:
        raise InputError(
            f"The model returned a single number, as a loss is; give a function of {kind} that returns {kind}."
        )
    if out.shape != pixels.shape:
        check = "size of the images (a source takes ?size=N)" if kind == "images" else f"shape of the {kind}"
        hint = (
            f"an autoencoder returns the shape it is given: check the {check}, and with the output option that the "
            "right part is taken."
        )
        if len(out) == len(pixels) and out[0].numel() == pixels[0].numel():
            hint = f"{other_form(out.shape, pixels.shape)}."
        raise InputError(f"The model returned {size(out.shape)} for {kind} of {size(pixels.shape)}; {hint}")
    if out.dtype != pixels.dtype or out.layout != pixels.layout:
        raise _other_numbers(out, pixels)
    if out.device != pixels.device:
        same_device = option("device", str(out.device))
        raise InputError(f"The model returned images on {out.device} for images on {pixels.device}; set {same_device}.")
    return out


def _other_numbers(out: Tensor, pixels: Tensor) -> InputError:
    """Say that a model returned numbers of another kind than the images."""
    kind = str(out.dtype) if out.layout == pixels.layout else f"a tensor of layout {out.layout}"
    advice = "give a function of images that converts what it returns"
    if out.layout == pixels.layout and out.is_floating_point():
        advice = "call model.float() first"
    return InputError(f"The model returned {kind} for {pixels.dtype} images; {advice}.")


def _check_finite(out: Tensor) -> None:
    finite = torch.isfinite(out)
    if not bool(finite.all()):
        share = float((~finite).double().mean())
        raise InputError(
            f"{share:.1%} of what the model returned is NaN or infinite; check its weights, and the range of values "
            "it takes (input_range)."
        )


def _check_dtype(model: Any, pixels: Tensor) -> None:
    kinds = {w.dtype for w in weights_of(model) if w.is_floating_point()} - {pixels.dtype}
    if kinds:
        raise InputError(
            f"The model's weights are {min(map(str, kinds))} and images are {pixels.dtype}; call model.float() first, "
            "and save the model to a file after that."
        )


def _check_colour(model: Any, pixels: Tensor) -> None:
    """Refuse colour images for a grey model: it cannot reproduce colour, and a score would call it safe."""
    if isinstance(model, Adapted) and model.how.channels == 1 and pixels.shape[1] == 3:
        spread = float((pixels.amax(1) - pixels.amin(1)).max())
        if spread > 1e-3:
            raise InputError(
                "The model takes grey images and these have colour, which it never saw and cannot reproduce; "
                "convert the images to grey, as it was trained."
            )


def _device_of(model: Any) -> torch.device:
    devices = {weights.device for weights in weights_of(model)}
    if len(devices) > 1:
        named = ", ".join(sorted(map(str, devices)))
        raise InputError(
            f"The model's weights lie on several devices ({named}); move it to one, for example with device."
        )
    if torch.device("meta") in devices:
        raise InputError("The model has no weights yet, only their shapes (device meta); load them first.")
    return next(iter(devices), torch.device("cpu"))
