"""A diffusion prior in closed form: images are drawn from a Gaussian, so the best noise prediction is a formula."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


def cosine_alphas(length: int = 200) -> Tensor:
    """What is left of the image at each time step, from nearly all to nearly nothing."""
    t = (torch.arange(length, dtype=torch.float64) + 1) / (length + 1)
    return torch.cos(t * math.pi / 2) ** 2


@dataclass(eq=False)
class GaussianPrior:
    """Images in [-1, 1] of this mean and covariance over all their values, and the noise that is expected in x_t."""

    mean: Tensor  # values
    covariance: Tensor  # values x values
    shape: tuple[int, int, int]
    alphas_cumprod: Tensor

    @classmethod
    def low_rank(cls, shape: tuple[int, int, int], rank: int, seed: int = 0, length: int = 200) -> "GaussianPrior":
        """mean + B z with few z: some of the pixels determine all the others."""
        rng = torch.Generator().manual_seed(seed)
        size = math.prod(shape)
        basis = torch.randn(size, rank, generator=rng, dtype=torch.float64) / 4
        mean = torch.rand(size, generator=rng, dtype=torch.float64) - 0.5
        return cls(mean, basis @ basis.T, shape, cosine_alphas(length))

    @classmethod
    def independent(cls, shape: tuple[int, int, int], seed: int = 0, length: int = 200) -> "GaussianPrior":
        """Every value on its own: what is kept says nothing about what is erased."""
        rng = torch.Generator().manual_seed(seed)
        size = math.prod(shape)
        mean = torch.rand(size, generator=rng, dtype=torch.float64) - 0.5
        return cls(mean, torch.diag(torch.rand(size, generator=rng).double() / 4 + 0.01), shape, cosine_alphas(length))

    def sample(self, count: int, seed: int = 1) -> Tensor:
        """Images of this distribution, in [0, 1] but for its tails."""
        rng = torch.Generator().manual_seed(seed)
        values, vectors = torch.linalg.eigh(self.covariance)
        z = torch.randn(count, len(self.mean), generator=rng, dtype=torch.float64)
        root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T  # symmetric: the signs of eigenvectors are not unique
        x = self.mean + z @ root
        return ((x + 1) / 2).view(count, *self.shape)

    def noise(self, x: Tensor, t: int) -> Tensor:
        """E[noise | x_t], as (x_t - sqrt(a) E[x_0 | x_t]) / sqrt(1 - a)."""
        a = float(self.alphas_cumprod[t])
        mean, covariance = self.mean.to(x.device), self.covariance.to(x.device)
        flat = x.flatten(1).double()
        seen = a * covariance + (1 - a) * torch.eye(len(mean), dtype=torch.float64, device=x.device)
        clean = mean + a**0.5 * (flat - a**0.5 * mean) @ torch.linalg.solve(seen, covariance)
        return ((flat - a**0.5 * clean) / (1 - a) ** 0.5).view_as(x).to(x.dtype)
