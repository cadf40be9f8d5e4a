"""ADMM for erasures in one pass over memory between two calls of f, on buffers that are allocated once.

f is given w = xi + u, so line 9 of Algorithm 1 is u = w - v, and lines 9 and 6 together make the next w from w, v and
y alone. With an erasure's prox that is  w <- m y + (1 - 2m) v + m w,  where m is 1 / (1 + gamma / 2) at kept values
and 0 elsewhere. The v and u of the last step are never used, so f is called once less than there are steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from recollect.accelerate.backend import AdmmStep


class Network(Protocol):
    """What fused steps need to know of a prepared network."""

    def __call__(self, x: Tensor, /, settings: Tensor | None = None) -> Tensor: ...

    def admm_schedule(self, steps: int, /) -> Tensor | None:
        """Return the settings of each step, and a last row for calls after them; None if steps do not differ."""

    @property
    def origin(self) -> float:
        """Return the value of v before the first step."""

    @property
    def changes_input(self) -> bool:
        """Say whether it may write into its input."""

    @property
    def waits(self) -> str:
        """Name the operation for which the host waits for a GPU, if there is one."""


class StepGraphs(Protocol):
    """Captured steps, such as `CudaGraphs`."""

    def size_for(self, images: int) -> int:
        """Round a batch up to a size that graphs are kept for."""

    def forget(self) -> None:
        """Drop all graphs: the buffers have moved."""

    def run(self, step: Callable[[], Tensor], state: Sequence[Tensor], times: int) -> int:
        """Take up to so many steps, which change `state`, and return how many were taken."""

    def once_more(self, size: int) -> Tensor | None:
        """Take one more step of a batch of this size and return its result; None if there is no graph of it."""


class FusedAdmm:
    """ADMM's steps for batch after batch; equal to the plain loop but for rounding.

    `graphs` replays steps. `find_kernel` finds a kernel that takes a step on so many values in one pass; without one,
    a step takes two. If the network has a schedule, the settings of the steps to come lie in a buffer, those of the
    next step first, and each step moves them up: one captured step then serves all settings.
    """

    def __init__(
        self,
        f: Network,
        gamma: float,
        steps: int,
        graphs: StepGraphs | None = None,
        find_kernel: Callable[[int], AdmmStep | None] | None = None,
    ) -> None:
        self._f, self._gamma, self._steps, self._graphs, self._find_kernel = f, gamma, steps, graphs, find_kernel
        self._copies = torch.is_inference_mode_enabled()  # which counts no writes into a tensor
        self._buffers, self._most = [torch.empty(0)], 0
        self._kernel: AdmmStep | None = None
        self._schedule = f.admm_schedule(steps)
        self._to_come = torch.empty(0)  # settings of the next step, and of those after it

    def __call__(self, y: Tensor, keep: Tensor) -> Tensor:
        """Estimate the images behind y, whose values are kept where `keep` is True."""
        copies = self._copies = self._copies or self._f.changes_input
        xi = self._run(y, keep)
        if self._copies != copies:  # f wrote into w
            xi = self._run(y, keep)
        return xi

    def carry_on(self, y: Tensor, keep: Tensor, v: Tensor, u: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        """Take so many steps from v and u, on the same buffers and graphs; return the last xi, v and u."""
        copies = self._copies = self._copies or self._f.changes_input
        after = self._carry_on(y, keep, v, u, steps)
        if self._copies != copies:  # f wrote into w
            after = self._carry_on(y, keep, v, u, steps)
        return after

    def _carry_on(self, y: Tensor, keep: Tensor, v: Tensor, u: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        own = slice(len(y))
        self._begin(y, keep, self._size_for(len(y)))
        if self._schedule is not None:
            self._to_come.copy_(self._schedule[-1])  # these calls come after the scheduled ones
        xi = self._prox(v - u, y, keep)
        self._w[own] = xi + u
        if steps > 1:
            self._take(steps - 2)
            w, v = self._step_before_last()
            xi = self._prox((2 * v - w)[own], y, keep)  # v - u, with u = w - v
        w, v = self._last_step()
        v = v[own].clone()  # of a graph, it holds until the next replay
        return xi, v, w[own] - v

    def _prox(self, z: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        g = self._gamma / 2
        return torch.where(keep, (y + g * z) / (1 + g), z)

    def _run(self, y: Tensor, keep: Tensor) -> Tensor:
        if self._steps == 1:
            return self._prox(torch.full_like(y, self._f.origin), y, keep)
        self._begin(y, keep, self._size_for(len(y)))
        self._take(self._steps - 2)
        w, v = self._last_step()
        u = w - v
        return self._prox((v - u)[: len(y)], y, keep)

    def _take(self, steps: int) -> None:
        """Take steps whose v nobody asks for."""
        if self._graphs:
            steps -= self._graphs.run(self._step, [self._w, self._to_come], steps)
        for _ in range(steps):
            self._step()

    def _step_before_last(self) -> tuple[Tensor, Tensor]:
        """Return w and v = f(w), and take the step to the next w."""
        w = self._w.clone()
        v = self._graphs.once_more(len(w)) if self._graphs else None
        return w, self._step() if v is None else v

    def _last_step(self) -> tuple[Tensor, Tensor]:
        """Return the last w that f is given, and v = f(w)."""
        if not self._graphs:
            return self._w, self._prior(self._w)
        w = self._w.clone()
        v = self._graphs.once_more(len(w))
        if v is None:
            v = self._prior(w)
        return w, v

    def _size_for(self, images: int) -> int:
        """Round a batch up to a size that graphs are kept for, but not beyond the largest batch so far.

        A few more rows can cost much: a library may choose another algorithm for them.
        """
        if not self._graphs:
            return images
        self._most = max(self._most, images)
        return min(self._graphs.size_for(images), self._most)

    def _begin(self, y: Tensor, keep: Tensor, size: int) -> None:
        """Set the first w, for v = origin and u = 0, and the coefficients; rows beyond the images stay as they are."""
        if size > len(self._buffers[0]):
            self._allocate(y, size)
        self._w, self._of_w, self._of_y, *others = (rows[:size] for rows in self._buffers)
        if self._schedule is not None:
            self._to_come.copy_(self._schedule)
        own = slice(len(y))
        m = self._of_w[own].copy_(keep).mul_(1 / (1 + self._gamma / 2))
        torch.mul(m, y, out=self._of_y[own])
        if others:
            self._of_v, self._half = others
            torch.mul(m, -2, out=self._of_v[own]).add_(1)
        self._w[own] = self._of_y[own]
        if self._f.origin:
            self._w[own] += self._f.origin * (1 - m)

    def _allocate(self, y: Tensor, size: int) -> None:
        rows = self._graphs.size_for(size) if self._graphs else size  # room for a few more images next time
        self._kernel = self._find_kernel(rows * y[0].numel()) if self._find_kernel else None
        buffers = 3 if self._kernel else 5
        self._buffers = [y.new_zeros((rows, *y.shape[1:])) for _ in range(buffers)]
        if self._schedule is not None:
            self._schedule = self._schedule.to(y)
            self._to_come = self._schedule.clone()
        if self._graphs:
            self._graphs.forget()

    def _step(self) -> Tensor:
        """Compute the next w, and return v."""
        v = self._prior(self._w)  # line 8
        if self._schedule is not None:
            self._to_come.copy_(self._to_come.roll(-1, 0))
        if self._kernel:
            self._kernel(self._w, v, self._of_y, self._of_w)
            return v
        torch.addcmul(self._of_y, self._of_v, v, out=self._half)  # lines 9 and 6
        torch.addcmul(self._half, self._of_w, self._w, out=self._w)
        return v

    def _prior(self, w: Tensor) -> Tensor:
        """Call f, and leave w as it is: a network that writes into its input is given copies."""
        f = self._f if self._schedule is None else partial(self._f, settings=self._to_come[0])
        if self._copies:
            return f(w.clone())
        before = w._version
        v = f(w)
        self._copies = w._version != before
        shares_memory = v.untyped_storage().data_ptr() == w.untyped_storage().data_ptr()
        return v.clone() if shares_memory else v  # w changes next
