"""One optimizer step, many times: eagerly on a CPU, as a captured CUDA graph on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from recollect.devices.precision import Precision, float32_precision
from recollect.errors import InputError
from recollect.training.optimizers import Adam, Muon
from recollect.training.recipe import Recipe
from recollect.training.split_tf32 import SPLIT, SplitProducts

Forward = Literal["tf32", "split", "ieee"]  # how the forward pass of a step is computed


class Stepper:
    """Trains `network` on `images` by windows of steps, and keeps an average of the weights beside it."""

    def __init__(self, network: nn.Module, images: Tensor, recipe: Recipe) -> None:
        self.network, self.images, self.recipe = network, images, recipe
        self.weights: list[Tensor] = list(network.parameters())
        if not self.weights:
            raise InputError(f"There is nothing to train: {type(network).__name__} has no parameters.")
        self.forward_precision: Forward = "tf32" if images.is_cuda else "ieee"
        self.optimizer: Adam | Muon
        self._batch = images if not self._partial else torch.empty_like(images[: recipe.batch])
        self.draws = torch.Generator(images.device).manual_seed(recipe.seed)
        self.order = torch.empty(0, dtype=torch.int64, device=images.device)
        self._log_loss = torch.zeros((), dtype=torch.float64, device=images.device)
        self.steps = 0
        self.horizon = recipe.average  # steps that the average reaches back
        self.restart(recipe.rate)

    @property
    def _partial(self) -> bool:
        return self.recipe.batch is not None and self.recipe.batch < len(self.images)

    def restart(self, rate: float) -> None:
        """A fresh optimizer and average, from the weights as they are."""
        recipe = self.recipe
        if recipe.optimizer == "adam":
            self.optimizer = Adam(self.weights, rate=rate, betas=recipe.betas)
        else:
            self.optimizer = Muon(self.weights, rate=rate, betas=recipe.betas, newton_schulz=recipe.newton_schulz)
        self.rate = rate
        self.average = [w.detach().clone() for w in self.weights]
        self._graphs: dict[tuple[Forward, int], torch.cuda.CUDAGraph] = {}

    def set_rate(self, rate: float) -> None:
        self.rate = rate
        self.optimizer.set_rate(rate)

    def run(self, steps: int, halt: Callable[[], bool] = lambda: False) -> float:
        """Take some steps, fewer where `halt` says so after one; returns the geometric mean of their losses (NaN if one
        was not finite)."""
        self._log_loss.zero_()
        taken = 0
        while taken < steps and not (taken and halt()):
            if self._partial:
                self._draw_batch()
            if self.images.is_cuda:
                self._graph().replay()
            else:
                self._step()
            taken += 1
        self.steps += taken
        mean = float(self._log_loss) / taken
        return math.exp(mean) if mean < math.inf else math.nan  # minus infinity is a perfect fit

    @torch.no_grad()
    def measure(self, *, averaged: bool, precision: Precision = "ieee", chunk: int = 1000) -> float:
        """The loss over all images, of the weights or of their average."""
        with self.using(self.average) if averaged else nullcontext(), float32_precision(precision):
            parts = [(self.network(x) - x).double().square().sum() for x in self.images.split(chunk)]
        return float(torch.stack(parts).sum()) / self.images.numel()

    @contextmanager
    def using(self, values: list[Tensor]) -> Iterator[None]:
        """The network with other weights for a while."""
        own = [w.detach().clone() for w in self.weights]
        self.set_weights(values)
        try:
            yield
        finally:
            self.set_weights(own)

    @torch.no_grad()
    def set_weights(self, values: list[Tensor]) -> None:
        torch._foreach_copy_(self.weights, values)

    def precision(self) -> dict[str, str]:
        """What each part of a step runs in now."""
        spelt = {"tf32": "TF32", "split": SPLIT, "ieee": "float32"}
        words = {"forward": spelt[self.forward_precision]}
        words["backward"] = "TF32" if self.images.is_cuda else "float32"
        if self.recipe.optimizer == "muon":
            words["orthogonal"] = "bfloat16" if self.images.is_cuda else "float32"
        return words

    def _step(self) -> None:
        with self._forward():
            loss = (self.network(self._batch) - self._batch).square().mean()
        backward: Precision = "tf32" if self.images.is_cuda else "ieee"
        with float32_precision(backward):  # gradients tolerate the rounding; the loss floor comes from the forward pass
            for weight, gradient in zip(self.weights, torch.autograd.grad(loss, self.weights), strict=True):
                weight.grad = gradient
            self._decay()
            self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.weights, 1 / self.horizon)
            self._log_loss += loss.detach().double().log()

    @torch.no_grad()
    def _decay(self) -> None:
        """Shrink the weight matrices apart from the gradient, in step with the rate."""
        if self.recipe.decay:
            matrices = [w for w in self.weights if w.ndim >= 2]
            torch._foreach_mul_(matrices, 1 - self.recipe.decay * self.optimizer.rate)

    @contextmanager
    def _forward(self) -> Iterator[None]:
        """The precision of the forward pass."""
        products = SplitProducts() if self.forward_precision == "split" else nullcontext()
        with float32_precision("tf32" if self.forward_precision == "tf32" else "ieee"), products:
            yield

    @property
    def measuring_precision(self) -> Precision:
        """Good enough to watch a run by; milestones are always measured in IEEE float32."""
        return "tf32" if self.forward_precision == "tf32" else "ieee"

    def _graph(self) -> torch.cuda.CUDAGraph:
        """The step captured for the current precision."""
        key = (self.forward_precision, self.horizon)
        if key not in self._graphs:
            with self._undone():
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):  # libraries set themselves up in these steps
                    for _ in range(3):
                        self._step()
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self._step()
            self._graphs = {key: graph}
        return self._graphs[key]

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """Steps taken inside count for nothing: every tensor they change gets its value back."""
        changed = [*self.weights, *self.average, self._log_loss]
        values = [t.detach().clone() for t in changed]
        state = {name: t.clone() for name, t in self.optimizer.state().items()}
        yield
        with torch.no_grad():
            torch._foreach_copy_(changed, values)
            for name, tensor in self.optimizer.state().items():  # an optimizer's state begins as zeros
                tensor.copy_(state[name]) if name in state else tensor.zero_()

    def _draw_batch(self) -> None:
        """The next images of a shuffled pass over the set."""
        size = len(self._batch)
        if len(self.order) < size:
            self.order = torch.randperm(len(self.images), generator=self.draws, device=self.images.device)
        self._batch.copy_(self.images[self.order[:size]])
        self.order = self.order[size:]
