"""Open any model as an autoencoder of images in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.counting import with_article
from recollect.devices.precision import check_device
from recollect.diffusion import Denoiser, DenoiserAt, is_pipeline, open_denoiser
from recollect.errors import InputError
from recollect.models.adapt import Adapted
from recollect.models.adaptation import Adaptation, read_adaptation
from recollect.models.batch_sizes import BatchSizes
from recollect.models.formats import ModelReference, find_format
from recollect.models.formats.base import known_suffixes
from recollect.models.value_range import Numbers

Model = str | Path | nn.Module | Callable[[Tensor], Any]


def open_model(
    what: Model,
    *,
    weights: str | Path | None = None,
    weights_key: str | None = None,
    label: int | None = None,
    device: torch.device | str | None = None,
    input_range: Numbers | None = None,
    output_range: Numbers | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    output: str | int | None = None,
    channels: int | None = None,
    batch: int | None = None,
    flat: bool = False,
    layout: str | None = None,
) -> nn.Module:
    """Open a model and adapt it: it then maps images in [0, 1] to images of the same shape.

    No file runs code when it is opened. A factory is code that you name and trust: it is imported and called.

    Args:
        what: An nn.Module, a callable, a pipeline of diffusers, a file (recollect checkpoint, TorchScript, .pt2,
            .onnx), a folder with a diffusion model or an autoencoder in Hugging Face layout, a name on the Hugging
            Face hub, or `package.module:factory`.
        weights: A state dict for a factory's network: .safetensors, .pt, .pth or .ckpt.
        weights_key: Which state dict of several: an entry of the file, or the prefix of its names, with its final dot.
        label: The class of a class-conditional diffusion model.
        device: Where the model runs. Defaults to CUDA if available; a model that is passed in stays where it is.
        input_range: The values that the model takes in place of [0, 1], such as "-1,1". A stated range holds, though
            another may fit better.
        output_range: The range of the output, if it differs from the range of the input.
        mean: In place of `input_range`: the mean of each channel.
        std: The standard deviation of each channel.
        output: Which part of the result is the image: 0, "sample", "0.sample". For logits "sigmoid" or "0.sigmoid".
        channels: 1 or 3, the channels that the model takes, if the images have another number.
        batch: The only number of images that the model takes at once.
        flat: Whether the model takes and returns one vector for each image.
        layout: "nhwc" for channels last, as in Keras and TensorFlow. Defaults to "nchw".

    Returns:
        A module from images in [0, 1] to images.

    Examples:
        >>> import torch, recollect
        >>> model = recollect.open_model(lambda x: (x, None), output=0, input_range="-1,1")
        >>> model(torch.zeros(1, 3, 8, 8)).shape
        torch.Size([1, 3, 8, 8])
    """
    options: dict[str, Any] = {
        "input_range": input_range, "output_range": output_range, "mean": mean, "std": std, "output": output,
        "channels": channels, "batch": batch, "flat": flat, "layout": layout,
    }  # fmt: skip
    read_adaptation(**options)  # a mistake is refused before the model is opened
    check_device(device)
    model = _open(what, weights, weights_key, label, device)
    adaptation = read_adaptation(**with_own_range(options, model))
    if batch is None:
        adaptation = replace(adaptation, batch=getattr(model, "batch_sizes", BatchSizes()))  # that a file itself states
    if not isinstance(model, nn.Module):
        return Adapted(model, adaptation, device)
    return model if adaptation.plain and not _may_be_doubted(model, adaptation) else Adapted(model, adaptation)


def at_most(model: Any, count: int | None) -> Any:
    """Return a model that is never given more images at once; recollect's own take any number of them."""
    if count is None or not callable(model) or _is_own(model):
        return model
    return Adapted.of(model).limited(count)


def _may_be_doubted(model: nn.Module, adaptation: Adaptation) -> bool:
    """Return whether the check of the range has to know what was stated; recollect's own models take [0, 1]."""
    return bool(adaptation.stated) and not _is_own(model)


def _is_own(model: Any) -> bool:
    return isinstance(model, Denoiser | DenoiserAt) or getattr(model, "takes_pixels", False)


def with_own_range(options: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Add the range of values that a file states of its model, unless the user states one."""
    stated = any(options[name] is not None for name in ("input_range", "mean", "std"))
    return dict(options) if stated else {**options, **getattr(model, "own_range", {})}


def _open(
    what: Model, weights: str | Path | None, key: str | None, label: int | None, device: torch.device | str | None
) -> Any:
    if isinstance(what, str | Path):
        reference = ModelReference(str(what), device, weights, key, label)
        model_format = find_format(reference)
        if not model_format.takes_weights:
            _check_no_weights(str(what), weights, key)
        if not model_format.takes_label:
            _check_no_label(str(what), label)
        return model_format.open(reference)
    _check_no_weights(f"{with_article(type(what).__name__)}", weights, key)
    if is_pipeline(what):
        return open_denoiser(what, label=label, device=device)
    _check_no_label(f"{with_article(type(what).__name__)}", label)
    return _check_object(what, device)


def _check_no_weights(given: str, weights: str | Path | None, key: str | None) -> None:
    if weights is not None or key is not None:
        raise InputError(f"weights go with package.module:factory, the code that builds the network, not with {given}.")


def _check_no_label(given: str, label: int | None) -> None:
    if label is not None:
        raise InputError(f"A label is the class of a class-conditional diffusion model, not of {given}; leave it out.")


def _check_object(model: Any, device: torch.device | str | None) -> Any:
    """Return a model that was passed in, on a device if one is asked for."""
    if isinstance(model, type):
        raise InputError(f"A model is an object, not the class {model.__name__}: make one, with {model.__name__}(...).")
    if not callable(model):
        raise InputError(
            f"A model is an nn.Module, a function from images to images, a file ({known_suffixes()}) or "
            f"package.module:factory; got {with_article(type(model).__name__)}."
        )
    if isinstance(model, nn.Module) and device is not None:
        return model.to(device)
    return model
