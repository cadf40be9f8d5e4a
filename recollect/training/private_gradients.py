"""DP-SGD's gradients (Abadi et al. 2016): those of each image are clipped, and noise is added to their sum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from recollect.errors import InputError


class PrivateGradients:
    """The gradients of a network whose weights are all of linear layers.

    An image's gradient of a linear layer is the product of two vectors, the layer's input and the gradient of its
    output. So its norm, and the sum of clipped gradients, need no gradient of a single image.
    """

    def __init__(self, network: nn.Module, clip: float, noise_multiplier: float) -> None:
        self._clip, self._noise = clip, noise_multiplier
        self._layers = [m for m in network.modules() if isinstance(m, nn.Linear)]
        weights = {id(w) for layer in self._layers for w in layer.parameters()}
        if any(id(w) not in weights for w in network.parameters()):
            raise InputError("Gradients are clipped for networks of linear layers alone: fc with lrelu or softplus.")
        self._passed: dict[nn.Module, tuple[Tensor, Tensor]] = {}  # input and output of each layer

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep what passes through the layers of a forward pass."""

        def keep(layer: nn.Module, inputs: Any, output: Tensor) -> None:
            self._passed[layer] = (inputs[0].detach(), output)

        hooks = [layer.register_forward_hook(keep) for layer in self._layers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @torch.no_grad()
    def set(self, loss: Tensor, generator: torch.Generator) -> None:
        """Set the gradients of all weights; the loss is a mean over the images."""
        inputs = [self._passed[layer][0] for layer in self._layers]
        outputs = [self._passed[layer][1] for layer in self._layers]
        with torch.enable_grad():
            slopes = torch.autograd.grad(len(outputs[0]) * loss, outputs)  # a row for each image's own loss
        squares = [_squares(slope) * (_squares(x) + 1) for x, slope in zip(inputs, slopes, strict=True)]
        norms = torch.stack(squares).sum(0).sqrt()
        share = (self._clip / norms.clamp(min=1e-30)).clamp(max=1.0)[:, None]
        for layer, x, slope in zip(self._layers, inputs, slopes, strict=True):
            clipped = share * slope
            layer.weight.grad = self._with_noise(clipped.T @ x, len(x), generator)
            if layer.bias is not None:
                layer.bias.grad = self._with_noise(clipped.sum(0), len(x), generator)
        self._passed.clear()

    def _with_noise(self, total: Tensor, images: int, generator: torch.Generator) -> Tensor:
        noise = torch.empty_like(total).normal_(generator=generator)
        return (total + self._noise * self._clip * noise) / images


def _squares(rows: Tensor) -> Tensor:
    return rows.square().sum(1)
