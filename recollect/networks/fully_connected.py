"""Fully connected autoencoders: the paper's FC-10 and FC-20."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn

from recollect.errors import InputError, is_number, is_whole
from recollect.networks.base import Network, PaperSettings, first_weights, make_activation


class FullyConnected(Network):
    """Linear layers with an activation between each pair.

    The output is an affine function of the last hidden layer. The width of that layer therefore decides how well many
    images can be fitted.

    Args:
        shape: The shape of one image, such as `images.shape`.
        layers: Number of linear layers, 2 or more.
        width: Width of the hidden layers.
        last_width: Width of the last hidden layer, if it differs.
        activation: `lrelu`, `prelu` or `softplus`.
        dropout: Probability with which hidden values are dropped in training.
        initialisation: `small`, or `pytorch` for PyTorch's own.
        seed: Seed of the first weights.

    Examples:
        >>> import torch
        >>> from recollect import FullyConnected
        >>> network = FullyConnected((3, 8, 8), layers=3, width=16)
        >>> network(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 3, 8, 8])
    """

    name: ClassVar[str] = "fc"
    summary: ClassVar[str] = "fully connected"
    order: ClassVar[int] = 10

    def __init__(
        self,
        shape: Sequence[int],
        *,
        layers: int = 10,
        width: int = 1024,
        last_width: int | None = None,
        activation: str = "lrelu",
        dropout: float = 0.0,
        initialisation: str = "small",
        seed: int = 42,
    ) -> None:
        super().__init__()
        if not is_whole(layers, 2):
            raise InputError(f"A fully connected autoencoder has at least 2 layers, got {layers!r}.")
        _check_sizes(shape, width, last_width)
        if not is_number(dropout) or not 0 <= dropout < 1:
            raise InputError(f"Dropout is a probability, 0 or more and below 1; got {dropout!r}.")
        self.settings: dict[str, Any] = {
            "shape": list(shape), "layers": layers, "width": width, "activation": activation, "seed": seed,
        }  # fmt: skip
        optional = {
            "last_width": (last_width, None),
            "dropout": (dropout, 0),
            "initialisation": (initialisation, "small"),
        }
        self.settings |= {name: value for name, (value, usual) in optional.items() if value != usual}
        hidden = [width] * (layers - 2) + [last_width or width]
        self.net = nn.Sequential(*_modules(tuple(shape), hidden, activation, dropout))
        first_weights(self, seed, initialisation)

    def forward(self, x: Tensor) -> Tensor:
        if list(x.shape[1:]) != self.settings["shape"]:
            given, expected = ("x".join(map(str, shape)) for shape in (x.shape[1:], self.settings["shape"]))
            raise InputError(f"This network takes images of {expected}; these are {given}.")
        return self.net(x)

    @classmethod
    def paper_settings_of(cls, settings: Mapping[str, Any], noise_std: float = 0.0) -> PaperSettings:
        deep_or_noisy = settings["layers"] > 10 or settings["activation"] == "prelu" or noise_std > 0
        return PaperSettings(gamma=0.1 if deep_or_noisy else 0.5, start="half_kept")


def _modules(shape: tuple[int, ...], hidden: Sequence[int], activation: str, dropout: float) -> Iterator[nn.Module]:
    """Yield the layers; every linear one but the last is followed by an activation, and by dropout if there is any."""
    values = math.prod(shape)
    yield nn.Flatten()
    for into, out in pairwise([values, *hidden]):
        yield nn.Linear(into, out)
        yield make_activation(activation)
        if dropout:
            yield nn.Dropout(dropout)
    yield nn.Linear(hidden[-1], values)
    yield nn.Unflatten(1, shape)


def _check_sizes(shape: Sequence[int], width: int, last_width: int | None) -> None:
    widths = [width] if last_width is None else [width, last_width]
    if isinstance(shape, Sequence) and shape and all(is_whole(size, 1) for size in (*shape, *widths)):
        return
    given = repr(shape) if isinstance(shape, Sequence) else f"a {type(shape).__name__}"
    raise InputError(
        f"A network takes the images' shape, such as images.shape, and a width of 1 or more; got {given} and "
        f"width {' and '.join(map(repr, widths))}."
    )
