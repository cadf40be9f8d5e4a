"""Take optimizer steps: eagerly on a CPU, as a captured CUDA graph on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from recollect.devices.cuda_graph import CapturedStep, capture, warm_up
from recollect.devices.precision import Precision, float32_precision
from recollect.errors import InputError
from recollect.training.dropout import Dropout
from recollect.training.optimizers import Adam, Muon
from recollect.training.private_gradients import PrivateGradients
from recollect.training.recipe import Recipe
from recollect.training.split_tf32 import SPLIT, SplitTF32
from recollect.training.step_images import StepImages

ForwardPrecision = Literal["tf32", "split", "ieee"]
PRECISION_NAMES: dict[ForwardPrecision, str] = {"tf32": "TF32", "split": SPLIT, "ieee": "float32"}
WARM_UP_STEPS = 3


def _private_gradients(network: nn.Module, recipe: Recipe) -> PrivateGradients | None:
    if recipe.clip is None:
        return None
    return PrivateGradients(network, recipe.clip, recipe.noise_multiplier)


class Stepper:
    """Trains a network on images, and keeps a running average of its weights."""

    def __init__(self, network: nn.Module, images: Tensor, recipe: Recipe, *, use_cuda_graph: bool = True) -> None:
        self.network, self.images, self.recipe = network, images, recipe
        self.weights: list[Tensor] = [w for w in network.parameters() if w.requires_grad]
        self.frozen = {name: w for name, w in network.named_parameters() if not w.requires_grad}
        _check_trainable(network, self.weights)
        self.forward_precision: ForwardPrecision = self._backward_precision
        self.optimizer: Adam | Muon
        self.drawn = StepImages(images, recipe)
        self._dropout = Dropout(network, recipe.seed, images.device)
        self._private = _private_gradients(network, recipe)
        self._use_cuda_graph = use_cuda_graph and images.is_cuda and not self._dropout and self._private is None
        self._log_loss = torch.zeros((), dtype=torch.float64, device=images.device)
        self.steps = 0
        self.horizon = recipe.average_steps or 1  # that the weights are averaged over
        self.restart(recipe.rate)

    def restart(self, rate: float) -> None:
        """Start a new optimizer and a new average from the current weights."""
        recipe = self.recipe
        if recipe.optimizer == "adam":
            self.optimizer = Adam(self.weights, rate=rate, betas=recipe.betas)
        else:
            self.optimizer = Muon(
                self.weights, rate=rate, betas=recipe.betas, newton_schulz_steps=recipe.newton_schulz_steps
            )
        self.rate = rate
        self.average = [w.detach().clone() for w in self.weights]
        self._captured: dict[tuple[ForwardPrecision, int], CapturedStep[None]] = {}

    def set_rate(self, rate: float) -> None:
        self.rate = rate
        self.optimizer.set_rate(rate)

    def run(self, steps: int, halt: Callable[[], bool] = lambda: False) -> float:
        """Take at least one step, and at most `steps` of them until `halt` returns True.

        Returns the geometric mean of the losses, which is NaN if one of them was not finite.
        """
        self._log_loss.zero_()
        taken = 0
        with float32_precision(self._backward_precision):  # switched once a window, not for each step
            while taken < steps and not (taken and halt()):
                self.drawn.draw()
                if self._use_cuda_graph:
                    self.capture().replay()
                else:
                    with self._dropout.drawing(self.steps + taken):
                        self._step()
                taken += 1
        self.steps += taken
        mean = float(self._log_loss) / taken
        return math.exp(mean) if mean < math.inf else math.nan  # minus infinity is a perfect fit

    @torch.no_grad()
    def measure(self, *, averaged: bool, precision: Precision = "ieee", chunk: int = 1000) -> float:
        """Measure the loss over all images, of the weights or of their average."""
        with self.using(self.average) if averaged else nullcontext(), float32_precision(precision):
            parts = [(self.network(x) - x).double().square().sum() for x in self.images.split(chunk)]
        return float(torch.stack(parts).sum()) / self.images.numel()

    @contextmanager
    def using(self, values: list[Tensor]) -> Iterator[None]:
        """Give the network other weights for a while."""
        own = [w.detach().clone() for w in self.weights]
        self.set_weights(values)
        try:
            yield
        finally:
            self.set_weights(own)

    @torch.no_grad()
    def set_weights(self, values: list[Tensor]) -> None:
        torch._foreach_copy_(self.weights, values)

    @torch.no_grad()
    def set_frozen(self, values: Mapping[str, Tensor]) -> None:
        """Give frozen parameters their values back, after others were drawn or the run was saved."""
        for name, weight in self.frozen.items():
            weight.copy_(values[name])

    def precision(self) -> dict[str, str]:
        """Name the precision of each part of a step."""
        names = {
            "forward": PRECISION_NAMES[self.forward_precision], "backward": PRECISION_NAMES[self._backward_precision],
        }  # fmt: skip
        if self.recipe.optimizer == "muon":
            names["orthogonal"] = "bfloat16" if self.images.is_cuda else "float32"
        return names

    @property
    def monitoring_precision(self) -> Precision:
        """The precision to monitor a run in; milestones are always measured in IEEE float32."""
        return "tf32" if self.forward_precision == "tf32" else "ieee"

    def capture(self) -> CapturedStep[None]:
        """Return the step as a CUDA graph for the current precision and average; the run's state stays the same."""
        key = (self.forward_precision, self.horizon)
        if key not in self._captured:
            device = self.images.device
            with float32_precision(self._backward_precision), self._keeping_state():
                warm_up(self._step, device, WARM_UP_STEPS)
                torch.cuda.synchronize(device)
                torch.cuda.empty_cache()  # a graph cannot use the memory that the warm-up left cached
                self._captured = {key: capture(self._step, device)}
        return self._captured[key]

    @property
    def _backward_precision(self) -> Precision:
        """Gradients tolerate TF32; the lowest loss depends on the forward pass."""
        return "tf32" if self.images.is_cuda and self.recipe.tf32_until is not None else "ieee"

    def _step(self) -> None:
        """Take a step; the caller has set the precision of the backward pass."""
        with self._forward_pass(), self._private.watching() if self._private else nullcontext():
            loss = (self.network(self.drawn.given) - self.drawn.wanted).square().mean()
        if self._private:
            self._private.set(loss, self.drawn.generator)
        else:
            self._set_gradients(loss)
        self._decay_weights()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.weights, 1 / self.horizon)
            self._log_loss += loss.detach().double().log()

    def _set_gradients(self, loss: Tensor) -> None:
        """Compute gradients; a weight that the output does not depend on has none, and stays as it is."""
        if not loss.requires_grad:
            name = type(self.network).__name__
            raise InputError(f"There is nothing to train in {name}: its output depends on no trainable parameter.")
        gradients = torch.autograd.grad(loss, self.weights, allow_unused=True)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient

    @torch.no_grad()
    def _decay_weights(self) -> None:
        """Shrink the weight matrices in proportion to the rate, apart from the gradient."""
        if self.recipe.weight_decay:
            matrices = [w for w in self.weights if w.ndim >= 2 and w.grad is not None]
            torch._foreach_mul_(matrices, 1 - self.recipe.weight_decay * self.optimizer.rate)

    @contextmanager
    def _forward_pass(self) -> Iterator[None]:
        """Set the precision of the forward pass where it differs from that of the backward pass."""
        if self.forward_precision == self._backward_precision:
            yield
            return
        splitting = SplitTF32() if self.forward_precision == "split" else nullcontext()
        with float32_precision(self.monitoring_precision), splitting:
            yield

    @contextmanager
    def _keeping_state(self) -> Iterator[None]:
        """Undo the steps taken inside: every tensor that they change gets its value back."""
        changed = [*self.weights, *self.average, self._log_loss]
        values = [t.detach().clone() for t in changed]
        optimizer_state = {name: t.clone() for name, t in self.optimizer.state().items()}
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(changed, values)
                for name, tensor in self.optimizer.state().items():
                    if name in optimizer_state:
                        tensor.copy_(optimizer_state[name])
                    else:  # made by these steps; an optimizer's state begins as zeros
                        tensor.zero_()


def _check_trainable(network: nn.Module, weights: list[Tensor]) -> None:
    if weights:
        return
    has_any = any(True for _ in network.parameters())
    why = "every parameter is frozen (requires_grad is False)" if has_any else "it has no parameters"
    raise InputError(f"There is nothing to train in {type(network).__name__}: {why}.")
