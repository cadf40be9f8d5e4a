"""ADMM for erasures in one pass over memory between two calls of f, on buffers that are allocated once.

f is given w = xi + u, so line 9 of Algorithm 1 is u = w - v, and lines 9 and 6 together make the next w from w, v and
y alone. With an erasure's prox that is  w <- m y + (1 - 2m) v + m w,  where m is 1 / (1 + gamma / 2) at kept values
and 0 elsewhere. The v and u of the last step are never used, so f is called once less than there are steps.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.accelerate.cuda_graphs import CudaGraphs
from recollect.accelerate.tf32x3.launch import LARGEST, move

FEWEST = 8  # steps from which a captured graph pays for itself


class Network(Protocol):
    """What fused steps need to know of a prepared network."""

    def __call__(self, x: Tensor, /) -> Tensor: ...

    @property
    def changes_input(self) -> bool:
        """Whether it may write into its input."""

    @property
    def waits(self) -> str:
        """The operation for which the host waits for a GPU, if there is one."""


class FusedAdmm:
    """ADMM's steps for batch after batch; equal to the plain loop but for rounding."""

    def __init__(
        self,
        f: Network,
        gamma: float,
        steps: int,
        pool: CudaGraphPool | None = None,
        unit: int = 8,
        known: bool = False,
        on_tensor_cores: bool = False,
    ) -> None:
        self._f, self._gamma, self._steps, self._on_tensor_cores = f, gamma, steps, on_tensor_cores
        self._copies = torch.is_inference_mode_enabled()  # there, writes into a tensor are not counted
        self._buffers, self._most, self._in_one_pass = [torch.empty(0)], 0, False
        self._graphs = CudaGraphs(pool, unit, known) if pool and steps >= FEWEST else None

    def __call__(self, y: Tensor, keep: Tensor) -> Tensor:
        """Estimate the images behind y, whose values are kept where `keep` is True."""
        copies = self._copies = self._copies or self._f.changes_input
        xi = self._run(y, keep)
        return xi if self._copies == copies else self._run(y, keep)  # f wrote into w: again, with copies

    def _prox(self, z: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        g = self._gamma / 2
        return torch.where(keep, (y + g * z) / (1 + g), z)

    def _run(self, y: Tensor, keep: Tensor) -> Tensor:
        if self._steps == 1:
            return self._prox(torch.zeros_like(y), y, keep)
        self._begin(y, keep, self._size_for(len(y)))
        left = self._steps - 2
        if self._graphs:
            left -= self._graphs.run(self._step, self._w, left)
        for _ in range(left):
            self._step()
        w, v = self._last_step()
        u = w - v
        return self._prox((v - u)[: len(y)], y, keep)

    def _last_step(self) -> tuple[Tensor, Tensor]:
        """The last w that f is given, and v = f(w)."""
        if not self._graphs:
            return self._w, self._prior(self._w)
        w = self._w.clone()
        v = self._graphs.once_more(len(w))
        return w, self._prior(w) if v is None else v

    def _size_for(self, images: int) -> int:
        """How many rows a step works on: a size that graphs are kept for, but no more than there ever were images.

        A few more rows can cost much: a library may choose another algorithm for them.
        """
        if not self._graphs:
            return images
        self._most = max(self._most, images)
        return min(self._graphs.size_for(images), self._most)

    def _begin(self, y: Tensor, keep: Tensor, size: int) -> None:
        """The first w, for v = u = 0, and the coefficients; rows beyond the images keep what they hold."""
        if size > len(self._buffers[0]):
            rows = self._graphs.size_for(size) if self._graphs else size  # a few more images next time need no others
            self._in_one_pass = self._on_tensor_cores and rows * y[0].numel() < LARGEST
            self._buffers = [y.new_zeros((rows, *y.shape[1:])) for _ in range(3 if self._in_one_pass else 5)]
            if self._graphs:
                self._graphs.forget()
        self._w, self._of_w, self._of_y, *others = (rows[:size] for rows in self._buffers)
        own = slice(len(y))
        m = self._of_w[own].copy_(keep).mul_(1 / (1 + self._gamma / 2))
        torch.mul(m, y, out=self._of_y[own])
        if others:
            self._of_v, self._half = others
            torch.mul(m, -2, out=self._of_v[own]).add_(1)
        self._w[own] = self._of_y[own]

    def _step(self) -> Tensor:
        """The next w; returns v."""
        v = self._prior(self._w)  # line 8
        if self._in_one_pass:
            move(self._w, v, self._of_y, self._of_w)
            return v
        torch.addcmul(self._of_y, self._of_v, v, out=self._half)  # lines 9 and 6
        torch.addcmul(self._half, self._of_w, self._w, out=self._w)
        return v

    def _prior(self, w: Tensor) -> Tensor:
        """f(w), with w left as it is: a network that is seen to work in place is given copies."""
        if self._copies:
            return self._f(w.clone())
        before = w._version
        v = self._f(w)
        self._copies = w._version != before
        return v.clone() if v.untyped_storage().data_ptr() == w.untyped_storage().data_ptr() else v  # w changes next
