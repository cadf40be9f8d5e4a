"""A model built by code of the user's own: package.module:factory.

This imports and calls the code that the user names, as running it in Python would: name only code that you trust.
No other format runs code, and no file can name a factory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from recollect.counting import with_article
from recollect.devices.precision import choose_device
from recollect.errors import InputError
from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.formats.weights import load_weights
from recollect.models.wording import option
from recollect.user_code import call, find_code, names_code


def is_factory(model: ModelReference) -> bool:
    """Return whether a model is named as package.module:factory and is no file."""
    return names_code(model.text) and not model.path.exists()


def open_factory(model: ModelReference) -> Callable[..., Any]:
    """Build a model by its factory, and load weights into it if a file of them is given."""
    built = build(model.text)
    if not isinstance(built, nn.Module):
        if model.weights is not None:
            raise InputError(
                f"{model.text} built {with_article(type(built).__name__)}, which takes no weights; leave them out."
            )
        return built
    if model.weights is None and model.weights_key is not None:
        unused = option("weights_key", model.weights_key)
        raise InputError(f"{unused} names an entry of a file of weights, and none is given; add --weights FILE.")
    if model.weights is not None:
        load_weights(built, Path(model.weights).expanduser(), model.weights_key)
    return built.to(choose_device(model.device)).float().eval()  # recoveries are scored in float32


def build(what: str) -> Callable[..., Any]:
    """Import the module and call its factory without arguments."""
    factory = find_code(what)
    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise InputError(
            f"{what} is {with_article(type(factory).__name__)}; expected a function or a class that builds the model."
        )
    model = call(factory, what, returns="the model")
    if not callable(model):
        raise InputError(
            f"{what} returned {with_article(type(model).__name__)}; expected an nn.Module or another callable."
        )
    return model


FORMAT = ModelFormat(
    name="factory",
    summary="code that builds the network, with or without a file of weights",
    example="package.module:factory",
    recognises=is_factory,
    open=open_factory,
    takes_weights=True,
    order=20,
)
