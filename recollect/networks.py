"""The networks of the paper. Recollect itself takes any callable from a batch to a batch of the same shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from recollect.errors import InputError, check_seed, is_whole

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "lrelu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "softplus": nn.Softplus,
}
PYTORCH_GAIN = 1 / math.sqrt(6)  # of PyTorch's default initialisation, relative to He's
SHRINK = 1e-4  # how much a signal shrinks from input to output at the start of training


class FullyConnected(nn.Module):
    """Linear layers with an activation between each pair; the paper's FC-10 and FC-20.

    `last_width` is the width of the last hidden layer, where that is another: the output is an affine function of it,
    so it decides how well many images can be fitted, and being one layer it may be far wider than the others.
    """

    def __init__(
        self,
        shape: Sequence[int],
        *,
        layers: int = 10,
        width: int = 1024,
        last_width: int | None = None,
        activation: str = "lrelu",
        seed: int = 42,
    ) -> None:
        super().__init__()
        if not is_whole(layers, 2):
            raise InputError(f"A fully connected autoencoder has at least 2 layers, got {layers!r}.")
        sizes = (width, *([] if last_width is None else [last_width]))
        if not isinstance(shape, Sequence) or not shape or not all(is_whole(side, 1) for side in (*shape, *sizes)):
            given = repr(shape) if isinstance(shape, Sequence) else f"a {type(shape).__name__}"
            raise InputError(
                f"A network takes the images' shape, such as images.shape, and a width of 1 or more; got {given} and "
                f"width {' and '.join(map(repr, sizes))}."
            )
        self.settings: dict[str, Any] = {
            "shape": list(shape), "layers": layers, "width": width, "activation": activation, "seed": seed,
            **({} if last_width is None else {"last_width": last_width}),
        }  # fmt: skip
        d, hidden = math.prod(shape), [width] * (layers - 2) + [last_width or width]
        modules: list[nn.Module] = [nn.Flatten()]
        for into, out in pairwise([d, *hidden, d]):
            modules += [nn.Linear(into, out), make_activation(activation)]
        self.net = nn.Sequential(*modules[:-1], nn.Unflatten(1, tuple(shape)))
        initialise(self, seed)

    def forward(self, x: Tensor) -> Tensor:
        if list(x.shape[1:]) != self.settings["shape"]:
            found, wanted = ("x".join(map(str, shape)) for shape in (x.shape[1:], self.settings["shape"]))
            raise InputError(f"This network takes images of {wanted}; these are {found}.")
        return self.net(x)


class UNet(nn.Module):
    """3x3 convolutions in stages, an activation after each, pooled between and mirrored.

    Without skips everything passes the latent. With them (`skip=True`) it learns the identity and memorizes little.
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        activation: str = "lrelu",
        skip: bool = False,
        seed: int = 42,
    ) -> None:
        super().__init__()
        if not widths or not all(is_whole(width, 1) for width in (channels, *widths)):
            raise InputError(f"A U-Net has channels and widths of 1 or more, got {channels!r} and {tuple(widths)}.")
        self.settings: dict[str, Any] = {
            "channels": channels, "widths": list(widths), "activation": activation, "skip": skip, "seed": seed,
        }  # fmt: skip
        self.skip = skip
        self.down = nn.ModuleList(_stage([a, b, b], activation) for a, b in pairwise((channels, *widths)))
        back = list(reversed(widths))
        self.up = nn.ModuleList(_stage([a + (b if skip else 0), b, b], activation) for a, b in pairwise(back))
        self.out = _stage([widths[0], channels], activation)
        initialise(self, seed)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] % 2 ** len(self.up) or x.shape[-2] % 2 ** len(self.up):
            size = f"{x.shape[-2]}x{x.shape[-1]}"
            raise InputError(
                f"This U-Net needs sides that are multiples of {2 ** len(self.up)}; the images are {size}."
            )
        kept: list[Tensor] = []
        for i, stage in enumerate(self.down):
            x = stage(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for stage, same_size in zip(self.up, reversed(kept[:-1]), strict=True):
            x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            x = stage(torch.cat([x, same_size], 1) if self.skip else x)
        return self.out(x)


class TiedTwoLayer(nn.Module):
    """W^T rho(W x): a proximity operator when W's singular values and rho's slopes lie in [0, 1] (Theorem 1)."""

    def __init__(self, weight: Tensor, rho: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        if not isinstance(weight, Tensor) or weight.ndim != 2:
            found = f"shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else f"a {type(weight).__name__}"
            raise InputError(f"W is an m x d matrix, got {found}.")
        self.weight = nn.Parameter(weight)
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return (self.rho(x.flatten(1) @ self.weight.T) @ self.weight).view_as(x)


def make_activation(name: str) -> nn.Module:
    """A fresh activation; PReLU brings a parameter of its own each time."""
    if name not in ACTIVATIONS:
        raise InputError(f"There is no activation {name!r}; choose from {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


def initialise(network: nn.Module, seed: int, shrink: float = SHRINK) -> None:
    """Draw all weights anew: He's scale, lowered so that a signal shrinks by `shrink` over all layers.

    Small initial weights make networks that memorize. PyTorch's default lowers each layer alike, which is right for
    shallow networks and the lowest used here, but would leave nothing of the signal after twenty layers.
    """
    check_seed(seed)
    layers = [m for m in network.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    generator = torch.Generator().manual_seed(seed)
    for layer in layers:
        fan_in = layer.weight[0].numel()
        deviation = math.sqrt(2 / fan_in) * max(shrink ** (1 / len(layers)), PYTORCH_GAIN)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * deviation)
            if layer.bias is not None:
                layer.bias.zero_()
    for module in network.modules():
        if isinstance(module, nn.PReLU):
            nn.init.constant_(module.weight, 0.25)


def _stage(widths: list[int], activation: str) -> nn.Sequential:
    modules: list[nn.Module] = []
    for into, out in pairwise(widths):
        modules += [nn.Conv2d(into, out, 3, padding=1), make_activation(activation)]
    return nn.Sequential(*modules)
