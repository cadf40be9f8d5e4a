"""Small networks with a known form, for torch and for numpy alike."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Random:
    """x -> centre + B tanh(A (x - centre)): the same network for the oracle (one vector) and for torch (a batch).

    `scale` shrinks everything: the network of values times scale, so that images move by as much less.
    """

    encoder: np.ndarray
    decoder: np.ndarray
    centre: np.ndarray
    scale: float = 1.0

    @classmethod
    def draw(cls, seed: int, size: int, gain: float = 1.0, scale: float = 1.0) -> "Random":
        rng = np.random.default_rng(seed)
        encoder, decoder = rng.standard_normal((8, size)), rng.standard_normal((size, 8))
        encoder, decoder = (gain * w / np.linalg.norm(w, 2) for w in (encoder, decoder))
        return cls(encoder, decoder, rng.random(size), scale)

    def vector(self, x: np.ndarray) -> np.ndarray:
        inner = np.tanh(self.encoder @ (x / self.scale - self.centre))
        return self.scale * (self.centre + self.decoder @ inner)

    def __call__(self, x: Tensor) -> Tensor:
        encoder, decoder, centre = (torch.from_numpy(w).to(x) for w in (self.encoder, self.decoder, self.centre))
        inner = torch.tanh((x.flatten(1) / self.scale - centre) @ encoder.T)
        return self.scale * (centre + inner @ decoder.T).view_as(x)


class Scheduled(nn.Module):
    """Shrinks what another network returns, by a share that differs from one step of ADMM to the next."""

    def __init__(self, inner: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, settings: Tensor | None = None) -> Tensor:
        return (0.7 if settings is None else settings[0]) * self.inner(x)

    def admm_schedule(self, steps: int) -> Tensor:
        return torch.tensor([*np.linspace(1, 0.5, steps), 0.7], dtype=torch.float64)[:, None]


class Halves(nn.Module):
    """Pulls every image halfway to `target`; has submodules in different modes, and notes how it was run."""

    def __init__(self, target: float = 0.5) -> None:
        super().__init__()
        self.target = target
        self.noise = nn.Dropout(0.5)  # visible in train mode
        self.frozen = nn.Dropout(0.5).eval()
        self.sizes: list[int] = []
        self.seen: list[object] = []

    def note(self) -> object:
        return None

    def forward(self, x: Tensor) -> Tensor:
        self.sizes.append(len(x))
        self.seen.append(self.note())
        return self.frozen(self.noise((x + self.target) / 2))
