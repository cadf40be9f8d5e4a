"""The last decades of a network whose last layer is linear: that layer is solved exactly, by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

RIDGE = 1e-12  # relative to the largest eigenvalue: keeps the solve defined when images repeat


@dataclass(frozen=True, eq=False)
class Finish:
    """The smallest change of the last layer that fits the images best. With as many features as images it fits
    them perfectly, and a share t of it takes the loss to (1 - t)^2 of what it was."""

    layer: nn.Linear
    start: tuple[Tensor, Tensor]  # weight and bias before any change, in float64
    change: tuple[Tensor, Tensor]

    @torch.no_grad()
    def apply(self, share: float) -> None:
        """Take this share of the change, whatever was taken before: what it gives depends on nothing else."""
        for own, start, change in zip((self.layer.weight, self.layer.bias), self.start, self.change, strict=True):
            own.copy_(start + share * change)


def last_linear(network: nn.Module) -> nn.Linear | None:
    """The layer that the output comes straight out of, if it is linear: nothing but reshaping may follow it."""
    leaves = [m for m in network.modules() if not list(m.children())]
    while leaves and isinstance(leaves[-1], (nn.Unflatten, nn.Flatten, nn.Identity)):
        leaves.pop()
    layer = leaves[-1] if leaves else None
    return layer if isinstance(layer, nn.Linear) and layer.bias is not None else None


def can_finish(network: nn.Module, images: Tensor) -> bool:
    """Is the last layer linear, with as many features as there are images?"""
    layer = last_linear(network)
    return layer is not None and len(images) <= layer.in_features


@torch.no_grad()
def solve_last_layer(network: nn.Module, images: Tensor) -> Finish | None:
    """What to add to the last layer, in float64; None where the last layer is not linear or lacks the features."""
    layer = last_linear(network)
    if layer is None or not can_finish(network, images):
        return None
    features: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0].double()))
    try:
        residual = (images - network(images)).double().flatten(1)
    finally:
        hook.remove()
    ones = torch.ones_like(features[0][:, :1])
    h = torch.cat([features[0], ones], 1)
    gram = h @ h.T
    gram += RIDGE * torch.linalg.matrix_norm(gram, 2) * torch.eye(len(h), dtype=h.dtype, device=h.device)
    change = torch.linalg.solve(gram, residual).T @ h
    return Finish(layer, (layer.weight.double(), layer.bias.double()), (change[:, :-1], change[:, -1]))
