"""The network of Theorem 1. Its weights are given, not trained, so no checkpoint and no command builds it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from recollect.errors import InputError


class TiedTwoLayer(nn.Module):
    """W^T rho(W x): a proximity operator when W's singular values and rho's slopes lie in [0, 1] (Theorem 1).

    Args:
        weight: W, an m x d matrix, where d is the number of values of an image.
        rho: The activation.

    Examples:
        >>> import torch
        >>> from recollect import TiedTwoLayer
        >>> tied = TiedTwoLayer(torch.eye(5, 12))
        >>> tied(torch.zeros(1, 3, 2, 2)).shape
        torch.Size([1, 3, 2, 2])
    """

    def __init__(self, weight: Tensor, rho: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        if not isinstance(weight, Tensor) or weight.ndim != 2:
            given = f"shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else f"a {type(weight).__name__}"
            raise InputError(f"W is an m x d matrix, got {given}.")
        self.weight = nn.Parameter(weight)
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return (self.rho(x.flatten(1) @ self.weight.T) @ self.weight).view_as(x)
