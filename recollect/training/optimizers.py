"""Adam and Muon behind one small interface: set the rate, take a step, save and load the state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan's coefficients: singular values end between 0.7 and 1.2
STEPS = 5  # of Newton-Schulz, unless both sides of a matrix are longer than ...
WIDE, WIDE_STEPS = 1024, 7
WIDEST, WIDEST_STEPS = 4096, 9
BANDS = 4  # of rows in which x x^T of a wide matrix is computed: 10 of 16 blocks, the others are their transposes
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class Muon:
    """Orthogonalizes the momentum of weight matrices by Newton-Schulz steps (Jordan et al. 2024); Adam for vectors.

    Kernels of convolutions are flattened, and layers of one shape are one batch. The rate is a tensor, so that a
    captured CUDA graph sees it change.

    `torch.optim.Muon` takes as many steps, but 2.3 to 2.6 times the CPU time for each (`python benchmarks/muon.py`). It
    refuses convolutions, and reads its rate on the host, which no CUDA graph allows.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        rate: float,
        momentum: float = 0.95,
        vector_ratio: float = 0.02,
        betas: tuple[float, float] = (0.9, 0.99),
        newton_schulz_steps: int | None = None,
    ) -> None:
        parameters = list(parameters)
        device = parameters[0].device
        self.rate = torch.tensor(rate, device=device)
        self.momentum, self.vector_ratio, self.newton_schulz_steps = momentum, vector_ratio, newton_schulz_steps
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
        with concurrent_streams(self.streams):
            for group, buffer, stream in zip(self.groups, self.buffers, self.streams, strict=True):
                with torch.cuda.stream(stream):
                    self._step_group(group, buffer)
        self.vectors.step()

    def _step_group(self, group: list[Tensor], buffer: Tensor) -> None:
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in group]
        gradient = torch.stack([g.flatten(1) for g in gradients])
        buffer.lerp_(gradient, 1 - self.momentum)
        nesterov = gradient.lerp(buffer, self.momentum)
        update = orthogonalize(nesterov, self.newton_schulz_steps)
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
    """PyTorch's fused Adam."""

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


def newton_schulz_steps_for(side: int) -> int:
    """Return how many steps a matrix needs whose shorter side is this long."""
    if side > WIDEST:
        return WIDEST_STEPS
    return WIDE_STEPS if side > WIDE else STEPS


def orthogonalize(matrices: Tensor, steps: int | None = None) -> Tensor:
    """Approximate the nearest (semi-)orthogonal matrices of a stack, in bfloat16 on a GPU.

    Divided by its Frobenius norm, a matrix of side w has singular values around 1/sqrt(w), which a step raises at most
    3.4 times. So wide matrices need more steps, or directions with small singular values are left out.
    """
    side = min(matrices.shape[-2:])
    wide = side > WIDE
    steps = steps or newton_schulz_steps_for(side)
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.flatten(-2).norm(dim=-1)[..., None, None] + 1e-30)
    x = x.bfloat16() if x.is_cuda else x
    for _ in range(steps):  # a x + (b gram + c gram^2) x
        if wide:
            gram = gram_in_bands(x)
            inner = b * gram + c * gram_in_bands(gram)
        else:
            gram = x @ x.mT
            inner = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, inner, x, beta=a)
    x = x.to(matrices.dtype)
    return x.mT if tall else x


def gram_in_bands(x: Tensor) -> Tensor:
    """Compute x x^T for a stack of matrices, each block and its transpose once."""
    side = x.shape[-2]
    edges = [side * i // BANDS for i in range(BANDS + 1)]
    gram = x.new_empty(*x.shape[:-1], side)
    for begin, end in pairwise(edges):
        gram[..., begin:end, :end] = x[..., begin:end, :] @ x[..., :end, :].mT
        gram[..., :begin, begin:end] = gram[..., begin:end, :begin].mT
    return gram


@contextmanager
def concurrent_streams(streams: Sequence[torch.cuda.Stream | None]) -> Iterator[None]:
    """Let work on these streams run at the same time, in order with the work before and after.

    Small matrix multiplications alone do not fill a GPU.
    """
    used = [stream for stream in streams if stream is not None]
    for stream in used:
        stream.wait_stream(torch.cuda.current_stream())
    yield
    for stream in used:
        torch.cuda.current_stream().wait_stream(stream)


def adam_options(device: torch.device) -> dict[str, bool]:
    """Return the options for fused kernels; on CUDA the step count is a tensor too, so that graphs can be captured."""
    return {"fused": True, "capturable": device.type == "cuda"}


def adam_state(adam: torch.optim.Adam) -> dict[str, Tensor]:
    parameters = adam.param_groups[0]["params"]
    return {f"adam.{i}.{name}": value for i, p in enumerate(parameters) for name, value in adam.state[p].items()}


def load_adam_state(adam: torch.optim.Adam, tensors: dict[str, Tensor]) -> None:
    for i, p in enumerate(adam.param_groups[0]["params"]):
        adam.state[p] = {}
        for name in ADAM_STATE:
            saved = tensors.get(f"adam.{i}.{name}")  # a parameter without a step has no state
            if saved is not None:
                adam.state[p][name] = saved.clone() if name == "step" else _laid_out_as(p, saved)


def _laid_out_as(p: Tensor, values: Tensor) -> Tensor:
    """Copy values in the memory format of a parameter, as fused kernels need it; files do not keep formats."""
    return torch.empty_like(p, requires_grad=False).copy_(values)
