"""A linear degradation as a float64 matrix, and its data step by solving the normal equations: slow and obvious."""

import torch
from torch import Tensor

from recollect.degradation import Degradation


def matrix(truth: Degradation, shape: tuple[int, int]) -> Tensor:
    """H for one channel: its columns are what it makes of single pixels."""
    h, w = shape
    pixels = torch.eye(h * w, dtype=torch.float64).view(h * w, 1, h, w)
    return truth.expand(pixels).apply(pixels).flatten(1).T


def dense_prox(big: Tensor, z: Tensor, y: Tensor, gamma: float) -> Tensor:
    """The minimum of |H x - y|^2 + gamma/2 |x - z|^2, where the gradient is zero."""
    left = big.T @ big + gamma / 2 * torch.eye(len(big), dtype=torch.float64)
    right = y.flatten(2) @ big + gamma / 2 * z.flatten(2)
    return torch.linalg.solve(left, right.transpose(1, 2)).transpose(1, 2).view_as(z)
