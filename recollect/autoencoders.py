"""The networks of the paper. Recollect itself takes any callable from a batch to a batch of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from recollect.errors import InputError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "lrelu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "softplus": nn.Softplus,
}


def activation(name: str) -> nn.Module:
    """A fresh activation; PReLU brings a parameter of its own each time."""
    if name not in ACTIVATIONS:
        raise InputError(f"There is no activation {name!r}; choose from {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


class FullyConnected(nn.Module):
    """Linear layers with an activation between each pair; the paper's FC-10 and FC-20."""

    def __init__(
        self, shape: tuple[int, int, int], layers: int = 10, width: int = 1024, activation_name: str = "lrelu"
    ) -> None:
        super().__init__()
        if layers < 2:
            raise InputError(f"A fully connected autoencoder has at least 2 layers, got {layers}.")
        d = shape[0] * shape[1] * shape[2]
        sizes = [d, *[width] * (layers - 1), d]
        modules: list[nn.Module] = [nn.Flatten()]
        for into, out in pairwise(sizes):
            modules += [nn.Linear(into, out), activation(activation_name)]
        self.net = nn.Sequential(*modules[:-1], nn.Unflatten(1, shape))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class UNet(nn.Module):
    """3x3 convolutions in stages, pooled between and mirrored; without skips everything passes the latent."""

    def __init__(
        self,
        channels: int = 3,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        activation_name: str = "lrelu",
        skip: bool = False,
    ) -> None:
        super().__init__()
        self.skip = skip
        act = activation_name
        self.down = nn.ModuleList(_stage(a, b, act) for a, b in pairwise((channels, *widths)))
        back = list(reversed(widths))
        self.up = nn.ModuleList(_stage(a + (b if skip else 0), b, act) for a, b in pairwise(back))
        self.out = nn.Conv2d(widths[0], channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for i, stage in enumerate(self.down):
            x = stage(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for stage, same_size in zip(self.up, reversed(kept[:-1]), strict=True):
            x = nn.functional.interpolate(x, size=same_size.shape[-2:], mode="nearest")
            x = stage(torch.cat([x, same_size], 1) if self.skip else x)
        return self.out(x)


def _stage(into: int, out: int, act: str) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(into, out, 3, padding=1), activation(act), nn.Conv2d(out, out, 3, padding=1), activation(act)
    )


class TiedTwoLayer(nn.Module):
    """W^T rho(W x): a proximity operator when W's singular values and rho's slopes lie in [0, 1] (Theorem 1)."""

    def __init__(self, weight: Tensor, rho: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        if weight.ndim != 2:
            raise InputError(f"W is an m x d matrix, got shape {tuple(weight.shape)}.")
        self.weight = nn.Parameter(weight)
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return (self.rho(x.flatten(1) @ self.weight.T) @ self.weight).view_as(x)
