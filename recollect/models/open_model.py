"""open_model: whatever the user has, as an autoencoder of images in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.checkpoints import FORMAT, load_checkpoint, read_tensors
from recollect.devices.precision import check_device, choose_device
from recollect.errors import InputError
from recollect.models.adapt import Adapted, read_adaptation
from recollect.models.formats import factory
from recollect.models.formats.detect import KNOWN, kind_of
from recollect.models.formats.exported_program import open_exported
from recollect.models.formats.onnx_file import open_onnx
from recollect.models.formats.torchscript import open_torchscript
from recollect.models.formats.weights import load_strictly, load_weights
from recollect.models.refusals import needs_pickle, weights_alone
from recollect.models.value_range import Numbers

Model = str | Path | nn.Module | Callable[[Tensor], Any]


def open_model(
    what: Model,
    *,
    weights: str | Path | None = None,
    weights_key: str | None = None,
    device: torch.device | str | None = None,
    input_range: Numbers = "0,1",
    output_range: Numbers | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    output: str | int | None = None,
    channels: int | None = None,
    batch: int | None = None,
    flat: bool = False,
) -> nn.Module:
    """Open a model and adapt it: images in [0, 1] go in, images of the same shape come out.

    what: an nn.Module, a callable, a file (recollect checkpoint, TorchScript, .pt2, .onnx), or package.module:factory.
        A factory is code that you name and trust: it is imported and called. No file runs code when it is opened.
    weights, weights_key: a state dict for a factory's network (.safetensors, .pt, .pth), and which one of several.
    device: where the model runs; by default a GPU where there is one, and for what is passed in, where it is.
    input_range, or mean and std: the values that the model wants in place of [0, 1], such as "-1,1".
    output_range: the range of its output, where that is not the one of its input.
    output: which part of what it returns is the image: 0, "sample", "0.sample".
    channels: 1 or 3, the channels that the model takes, where the images have another number.
    batch: the only number of images it takes at once.
    flat: it takes and returns vectors, one an image.
    """
    how = read_adaptation(
        input_range=input_range,
        output_range=output_range,
        mean=mean,
        std=std,
        output=output,
        channels=channels,
        batch=batch,
        flat=flat,
    )
    check_device(device)
    model = _opened(what, weights, weights_key, device)
    if how.batch is None:
        how = replace(how, batch=_stated_batch(model))
    if isinstance(model, nn.Module):
        return model if how.plain else Adapted(model, how)
    return Adapted(model, how, device)


def _opened(what: Model, weights: str | Path | None, key: str | None, device: torch.device | str | None) -> Any:
    if isinstance(what, str) and factory.is_factory(what) and not Path(what).exists():
        return _built(what, weights, key, device)
    if weights is not None or key is not None:
        given = what if isinstance(what, str | Path) else f"a {type(what).__name__}"
        raise InputError(f"weights go with package.module:factory, the code that builds the network, not with {given}.")
    if isinstance(what, str | Path):
        return _opened_file(Path(what).expanduser(), device)
    if isinstance(what, nn.Module):
        return what if device is None else what.to(device)
    if isinstance(what, type):
        raise InputError(f"A model is an object, not the class {what.__name__}: make one, with {what.__name__}(...).")
    if not callable(what):
        raise InputError(
            f"A model is an nn.Module, a function from images to images, a file ({KNOWN}) or package.module:factory; "
            f"got a {type(what).__name__}."
        )
    return what


def _built(what: str, weights: str | Path | None, key: str | None, device: torch.device | str | None) -> Any:
    model = factory.build(what)
    if not isinstance(model, nn.Module):
        if weights is not None:
            raise InputError(f"{what} built a {type(model).__name__}, which takes no weights; leave them out.")
        return model
    if weights is not None:
        load_weights(model, Path(weights).expanduser(), key)
    return model.to(choose_device(device)).float().eval()  # recoveries are scored in float32


def _opened_file(path: Path, device: torch.device | str | None) -> nn.Module:
    kind = kind_of(path)
    if kind == "onnx":
        return open_onnx(path, device)
    openers = {"safetensors": _checkpoint, "torchscript": open_torchscript, "exported": open_exported}
    if kind in openers:
        return openers[kind](path, choose_device(device))
    if kind == "weights":
        load_strictly(path)  # one that needs pickle is refused with the way round that
        raise weights_alone(path)
    if kind == "pickle":
        raise needs_pickle(path, "it is a bare pickle, was saved by torch before 1.6, or is no model at all")
    held = {"arrays": "holds arrays, not a model", "archive": "is an archive of something else"}
    named = path.suffix.lower() in KNOWN.split(", ")
    unknown = "does not hold what its name says" if named else "is not a file of a known kind"
    raise InputError(f"{path} {held.get(kind, unknown)}; a model is one of {KNOWN}.")


def _checkpoint(path: Path, device: torch.device | str) -> nn.Module:
    _, about = read_tensors(path, only_metadata=True)
    if about.get("format") != FORMAT:
        raise weights_alone(path)
    return load_checkpoint(path, device).network.eval()


def _stated_batch(model: Any) -> int | None:
    """A fixed number of images that the file itself states."""
    found = getattr(model, "batch", None)
    return found if type(model).__module__.startswith("recollect.") and isinstance(found, int) else None
