"""Muon: momentum made orthogonal by Newton-Schulz steps (Jordan et al. 2024), batched over layers of one shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's coefficients: singular values end between 0.7 and 1.2
STEPS = 5  # of Newton-Schulz; more for matrices whose both sides are above ...
WIDE, WIDE_STEPS = 1024, 7
WIDEST, WIDEST_STEPS = 4096, 9
BANDS = 4  # that the square of a wide matrix is computed in: 10 of 16 blocks, the others are their mirror images
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class Muon:
    """Muon for weight matrices (convolutions flattened), Adam for biases and slopes; `rate` is a tensor, so that a
    captured CUDA graph sees it change."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        rate: float,
        momentum: float = 0.95,
        vector_ratio: float = 0.02,
        betas: tuple[float, float] = (0.9, 0.99),
        newton_schulz: int | None = None,
    ) -> None:
        parameters = list(parameters)
        device = parameters[0].device
        self.rate = torch.tensor(rate, device=device)
        self.momentum, self.vector_ratio, self.newton_schulz = momentum, vector_ratio, newton_schulz
        groups: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
        for p in parameters:
            if p.ndim >= 2:
                rows, columns = p.flatten(1).shape
                groups[rows, columns].append(p)
        self.groups = list(groups.values())
        self.buffers = [torch.zeros(len(g), *g[0].flatten(1).shape, device=device) for g in self.groups]
        self.streams = [torch.cuda.Stream(device) if device.type == "cuda" else None for _ in self.groups]
        vectors = [p for p in parameters if p.ndim < 2]
        self.vectors = torch.optim.Adam(
            vectors, lr=torch.tensor(rate * vector_ratio, device=device), betas=betas, **adam_options(device)
        )

    def set_rate(self, rate: float) -> None:
        self.rate.fill_(rate)
        self.vectors.param_groups[0]["lr"].fill_(rate * self.vector_ratio)

    @torch.no_grad()
    def step(self) -> None:
        with side_by_side(self.streams):
            for group, buffer, stream in zip(self.groups, self.buffers, self.streams, strict=True):
                with torch.cuda.stream(stream):
                    self._step_group(group, buffer)
        self.vectors.step()

    def _step_group(self, group: list[Tensor], buffer: Tensor) -> None:
        gradient = torch.stack([p.grad.flatten(1) for p in group if p.grad is not None])
        buffer.lerp_(gradient, 1 - self.momentum)
        update = orthogonal(gradient.lerp(buffer, self.momentum), self.newton_schulz)  # Nesterov's look ahead
        rows, columns = update.shape[1:]
        update = update * (self.rate * -(max(1.0, rows / columns) ** 0.5))
        torch._foreach_add_(group, [u.view_as(p) for u, p in zip(update, group, strict=True)])

    def state(self) -> dict[str, Tensor]:
        tensors = {f"muon.{i}": b for i, b in enumerate(self.buffers)}
        return tensors | adam_state(self.vectors)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        for i, buffer in enumerate(self.buffers):
            buffer.copy_(tensors[f"muon.{i}"])
        load_adam_state(self.vectors, tensors)


class Adam:
    """torch's fused Adam behind the same few methods."""

    def __init__(self, parameters: Iterable[Tensor], *, rate: float, betas: tuple[float, float] = (0.9, 0.99)) -> None:
        parameters = list(parameters)
        device = parameters[0].device
        self.rate = torch.tensor(rate, device=device)
        self.adam = torch.optim.Adam(parameters, lr=self.rate, betas=betas, **adam_options(device))

    def set_rate(self, rate: float) -> None:
        self.rate.fill_(rate)

    def step(self) -> None:
        self.adam.step()

    def state(self) -> dict[str, Tensor]:
        return adam_state(self.adam)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        load_adam_state(self.adam, tensors)


def newton_schulz_steps(side: int) -> int:
    """As many as a matrix needs whose shorter side this is."""
    return WIDEST_STEPS if side > WIDEST else WIDE_STEPS if side > WIDE else STEPS


def orthogonal(matrices: Tensor, steps: int | None = None) -> Tensor:
    """The nearest (semi-)orthogonal matrices, roughly: a stack of them at once, in bfloat16 on a GPU.

    Divided by its Frobenius norm, a matrix of side w has singular values around 1/sqrt(w), which a step raises at most
    3.4 times: wide matrices need more steps, or the directions that a gradient says little about are left out.
    """
    side = min(matrices.shape[-2:])
    wide = side > WIDE
    steps = steps or newton_schulz_steps(side)
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.flatten(-2).norm(dim=-1)[..., None, None] + 1e-30)
    x = x.bfloat16() if x.is_cuda else x
    for _ in range(steps):  # a x + (b gram + c gram^2) x
        gram = square_in_bands(x) if wide else x @ x.mT
        inner = b * gram + c * square_in_bands(gram) if wide else torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, inner, x, beta=a)
    x = x.to(matrices.dtype)
    return x.mT if tall else x


def square_in_bands(x: Tensor) -> Tensor:
    """x x^T for a stack of matrices, without computing what its symmetry tells."""
    side = x.shape[-2]
    edges = [side * i // BANDS for i in range(BANDS + 1)]
    square = x.new_empty(*x.shape[:-1], side)
    for begin, end in pairwise(edges):
        square[..., begin:end, :end] = x[..., begin:end, :] @ x[..., :end, :].mT
        square[..., :begin, begin:end] = square[..., begin:end, :begin].mT
    return square


@contextmanager
def side_by_side(streams: Sequence[torch.cuda.Stream | None]) -> Iterator[None]:
    """Work given to these streams inside runs at the same time; it starts after what came before and ends before
    what comes after. Small products alone do not fill a GPU."""
    used = [stream for stream in streams if stream is not None]
    for stream in used:
        stream.wait_stream(torch.cuda.current_stream())
    yield
    for stream in used:
        torch.cuda.current_stream().wait_stream(stream)


def adam_options(device: torch.device) -> dict[str, bool]:
    """Fused everywhere; on CUDA its step count is a tensor too, so that graphs can be captured."""
    return {"fused": True, "capturable": device.type == "cuda"}


def adam_state(adam: torch.optim.Adam) -> dict[str, Tensor]:
    parameters = adam.param_groups[0]["params"]
    return {f"adam.{i}.{name}": value for i, p in enumerate(parameters) for name, value in adam.state[p].items()}


def load_adam_state(adam: torch.optim.Adam, tensors: dict[str, Tensor]) -> None:
    for i, p in enumerate(adam.param_groups[0]["params"]):
        saved = {name: tensors[f"adam.{i}.{name}"] for name in ADAM_STATE if f"adam.{i}.{name}" in tensors}
        adam.state[p] = {name: t.clone() if name == "step" else _laid_out_as(p, t) for name, t in saved.items()}


def _laid_out_as(p: Tensor, values: Tensor) -> Tensor:
    """The fused kernels want a parameter and its moments in one memory format; files know only rows and columns."""
    return torch.empty_like(p, requires_grad=False).copy_(values)
