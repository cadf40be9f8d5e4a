"""Solve a linear last layer by least squares: the last decades of the loss in one step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

RIDGE = 1e-12  # relative to the largest eigenvalue: keeps the system solvable if images repeat


@dataclass(frozen=True, eq=False)
class LastLayerSolution:
    """The smallest change of the last layer that fits the images best.

    With as many features as images the fit is perfect, and a share t of the change multiplies the loss by (1 - t)^2.
    """

    layer: nn.Linear
    start: tuple[Tensor, Tensor]  # weight and bias before any change, in float64
    change: tuple[Tensor, Tensor]

    @torch.no_grad()
    def apply(self, share: float) -> None:
        """Set the layer to its start plus this share of the change, whatever was applied before."""
        parameters = (self.layer.weight, self.layer.bias)
        for parameter, start, change in zip(parameters, self.start, self.change, strict=True):
            parameter.copy_(start + share * change)


def last_linear(network: nn.Module) -> nn.Linear | None:
    """Return the linear layer that gives the output, if it is trained and only reshaped after; else None."""
    leaves = [m for m in network.modules() if not list(m.children())]
    while leaves and isinstance(leaves[-1], (nn.Unflatten, nn.Flatten, nn.Identity)):
        leaves.pop()
    layer = leaves[-1] if leaves else None
    if not isinstance(layer, nn.Linear) or layer.bias is None:
        return None
    return layer if layer.weight.requires_grad and layer.bias.requires_grad else None


def can_solve(network: nn.Module, images: Tensor) -> bool:
    """Whether the last layer is linear, with at least as many features as there are images."""
    layer = last_linear(network)
    return layer is not None and len(images) <= layer.in_features


@torch.no_grad()
def solve_last_layer(network: nn.Module, images: Tensor) -> LastLayerSolution | None:
    """Solve for the change of the last layer in float64; None if the layer is not linear or lacks features."""
    layer = last_linear(network)
    if layer is None or not can_solve(network, images):
        return None
    inputs: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0].double()))
    try:
        residual = (images - network(images)).double().flatten(1)
    finally:
        hook.remove()
    if not inputs:  # a layer that the output does not come from
        return None
    for_bias = torch.ones_like(inputs[0][:, :1])
    features = torch.cat([inputs[0], for_bias], 1)
    gram = features @ features.T
    identity = torch.eye(len(features), dtype=features.dtype, device=features.device)
    gram += RIDGE * torch.linalg.matrix_norm(gram, 2) * identity
    change = torch.linalg.solve(gram, residual).T @ features
    start = (layer.weight.double(), layer.bias.double())
    return LastLayerSolution(layer, start, (change[:, :-1], change[:, -1]))
