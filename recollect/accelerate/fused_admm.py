"""ADMM for erasures, underneath the page: one pass over memory between two calls of f, on buffers made once.

f is given w = xi + u, so line 9 is u = w - v, and lines 9 and 6 together make the next w from w, v and y alone. With
an erasure's prox that is  w <- m y + (1 - 2m) v + m w,  where m is 1 / (1 + gamma / 2) at kept values and 0 elsewhere.
The v and u of the last step are never looked at, so f is called once less than there are steps.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor

from recollect.accelerate.cuda_graphs import Graphs
from recollect.accelerate.tf32x3.launch import LARGEST, move
from recollect.degradation import Degradation, Erasure
from recollect.engine.runtime import Ready

FEWEST = 8  # steps from which a captured graph pays for itself


def has_erasure_prox(theta: Degradation) -> TypeGuard[Erasure]:
    return isinstance(theta, Erasure) and type(theta).prox is Erasure.prox


class ErasureSteps:
    """The steps of ADMM for batch after batch; what `admm` gives, but for rounding."""

    def __init__(self, f: Ready, gamma: float, steps: int) -> None:
        self._f, self._gamma, self._steps = f, gamma, steps
        self._copies = torch.is_inference_mode_enabled()  # there, writes into a tensor are not counted
        self._buffers, self._most, self._in_one_pass = [torch.empty(0)], 0, False
        captures = steps >= FEWEST and f.capturable
        self._graphs = Graphs(f.graph_memory, f.batch_unit, f.is_known_code) if captures else None

    def __call__(self, y: Tensor, theta: Erasure) -> Tensor:
        copies = self._copies = self._copies or self._f.changes_input
        xi = self._run(y, theta)
        return xi if self._copies == copies else self._run(y, theta)  # f wrote into w: again, with copies

    def _run(self, y: Tensor, theta: Erasure) -> Tensor:
        if self._steps == 1:
            return theta.prox(torch.zeros_like(y), y, self._gamma)
        self._begin(y, theta, self._size_for(len(y)))
        left = self._steps - 2
        if self._graphs:
            left -= self._graphs.run(self._step, self._w, left)
        for _ in range(left):
            self._step()
        w, v = self._last_step()
        u = w - v
        return theta.prox((v - u)[: len(y)], y, self._gamma)

    def _last_step(self) -> tuple[Tensor, Tensor]:
        """The last w that f is given, and v = f(w)."""
        if not self._graphs:
            return self._w, self._prior(self._w)
        w = self._w.clone()
        v = self._graphs.once_more(len(w))
        return w, self._prior(w) if v is None else v

    def _size_for(self, images: int) -> int:
        """How many rows a step works on: a size that graphs like, but no more than there ever were images. A few more
        can cost much: a library may take another algorithm for them."""
        if not self._graphs:
            return images
        self._most = max(self._most, images)
        return min(self._graphs.size_for(images), self._most)

    def _begin(self, y: Tensor, theta: Erasure, size: int) -> None:
        """The first w, for v = u = 0, and the coefficients; rows beyond the images keep what they hold."""
        if size > len(self._buffers[0]):
            rows = self._graphs.size_for(size) if self._graphs else size  # a few more images next time need no others
            self._in_one_pass = self._f.on_tensor_cores and rows * y[0].numel() < LARGEST
            self._buffers = [y.new_zeros((rows, *y.shape[1:])) for _ in range(3 if self._in_one_pass else 5)]
            if self._graphs:
                self._graphs.forget()
        self._w, self._of_w, self._of_y, *others = (rows[:size] for rows in self._buffers)
        own = slice(len(y))
        m = self._of_w[own].copy_(theta.keep).mul_(1 / (1 + self._gamma / 2))
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
