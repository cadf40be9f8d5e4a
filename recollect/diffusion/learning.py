"""One training step of a denoiser, captured on a GPU, and everything that a later run needs to resume."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from recollect.devices.cuda_graph import CapturedStep, capture, warm_up
from recollect.diffusion.denoiser import Predict, call
from recollect.diffusion.networks import DenoisingNetwork
from recollect.diffusion.preconditioning import EDM
from recollect.diffusion.recipe import SCHEDULES, DenoiserRecipe

LARGEST_GRADIENT = 1.0
AVERAGE_POWER = 16.97  # of the training's steps: an average of width 5% (Karras et al. 2024)
WARM_UP_STEPS = 3


@cache
def compiled_call() -> Predict:
    """Compile the call of a network, for one batch size: all networks of one kind share what is compiled.

    PyTorch's own group norm is slow for channels-last maps: a step of the U-Net takes less than half the time compiled.
    """
    return torch.compile(call, dynamic=False)


class Learner:
    """A network, its averaged weights, the optimizer and the draws; images are 8-bit and stay on the device."""

    def __init__(
        self, network: DenoisingNetwork, images: Tensor, recipe: DenoiserRecipe, *,
        use_cuda_graph: bool = True, compiles: bool = False,
    ) -> None:  # fmt: skip
        self.recipe, self.images = recipe, images
        on_gpu, device = images.is_cuda, images.device
        self._use_cuda_graph = use_cuda_graph and on_gpu
        self._predict = compiled_call() if compiles else call
        self.network = network.to(device).train()
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # PyTorch's stubs lack it
        self.weights: list[Tensor] = list(self.network.parameters())
        self.averaged = [w.detach().clone() for w in self.weights]
        rate = torch.zeros((), device=device) if on_gpu else 0.0
        self.optimizer = torch.optim.Adam(self.weights, rate, (0.9, 0.99), fused=on_gpu, capturable=on_gpu)
        self.draws = torch.Generator(device).manual_seed(recipe.seed)
        self.steps = 0
        self.seconds = 0.0  # spent so far, in this run and earlier ones
        size = (recipe.batch, *images.shape[1:])
        self._x, self._noise = torch.zeros(size, device=device), torch.zeros(size, device=device)
        self._sigma = torch.ones(recipe.batch, device=device)
        self._average_weight = torch.zeros((), device=device)
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._captured: CapturedStep[None] | None = None

    def step(self, part_done: float) -> None:
        """Take one step, when this part of the training is over."""
        self.steps += 1
        for own, drawn in zip((self._x, self._noise, self._sigma), self.draw_batch(), strict=True):
            own.copy_(drawn)
        self._set_rate(self.recipe.rate_at(self.steps, part_done))
        self._average_weight.fill_(1 - (1 - 1 / self.steps) ** (AVERAGE_POWER + 1))
        if self._use_cuda_graph:
            self._capture().replay()
        else:
            self._take()

    def take_loss(self, steps: int) -> float:
        """Read the mean loss of the last steps and begin a new one; the host waits for the device here."""
        mean = float(self._loss_sum) / steps
        self._loss_sum.zero_()
        return mean

    def averaged_network(self) -> DenoisingNetwork:
        """Copy the network with its averaged weights."""
        network = copy.deepcopy(self.network).eval()
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), self.averaged)
        return network

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything that a later run needs to resume: tensors, and values for JSON."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"averaged.{number}": tensor for number, tensor in enumerate(self.averaged)}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": tensor for name, tensor in moments.items()}
        return {**tensors, "draws": self.draws.get_state()}, {"steps": self.steps, "seconds": self.seconds}

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        names = self.network.state_dict()
        self.network.load_state_dict({name: tensors[f"network.{name}"] for name in names})
        torch._foreach_copy_(self.averaged, [tensors[f"averaged.{number}"] for number in range(len(self.averaged))])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": self._moments(tensors)})
        self.draws.set_state(tensors["draws"].cpu())
        self.steps, self.seconds = values["steps"], values["seconds"]
        self._captured = None  # the optimizer's tensors are others now

    def _moments(self, tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
        """Collect the optimizer's tensors for each weight, laid out in memory like the weight."""
        moments: dict[int, dict[str, Tensor]] = {number: {} for number in range(len(self.weights))}
        for key in [key for key in tensors if key.startswith("optimizer.")]:
            _, number, name = key.split(".", 2)
            like = self.weights[int(number)]
            value = tensors[key]
            moments[int(number)][name] = torch.empty_like(like).copy_(value) if value.shape == like.shape else value
        return moments

    def draw_batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw images in [-1, 1], noise and noise levels; not in the captured step, whose draws no state restores."""
        count, device = self.recipe.batch, self.images.device

        def uniform(size: int) -> Tensor:
            return torch.rand(size, generator=self.draws, device=device)

        chosen = torch.randint(len(self.images), (count,), generator=self.draws, device=device)
        x = self.images[chosen].float() / 127.5 - 1
        if self.recipe.flip:
            x = torch.where((uniform(count) < 0.5).view(-1, 1, 1, 1), x.flip(3), x)
        shares = (torch.arange(count, device=device) + uniform(1)) / count  # less noise in the loss than free draws
        noise = torch.randn(x.shape, generator=self.draws, device=device)
        return x, noise, SCHEDULES[self.recipe.schedule](shares)

    def _take(self) -> None:
        """Move the weights by one step, and the average after them."""
        x, sigma = self._x, self._sigma.view(-1, 1, 1, 1)
        skip, out, scale, time = EDM().at(sigma)
        noisy = x + sigma * self._noise
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda, cache_enabled=False):
            predicted = self._predict(self.network, scale * noisy, time.flatten())
        loss = (predicted.float() - (x - skip * noisy) / out).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, LARGEST_GRADIENT, foreach=x.is_cuda)
        self.optimizer.step()
        with torch.no_grad():
            change = torch._foreach_sub(self.weights, self.averaged)
            torch._foreach_mul_(change, self._average_weight)
            torch._foreach_add_(self.averaged, change)
            self._loss_sum += loss.detach().double()

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # the tensor that the captured step reads
            else:
                group["lr"] = rate

    def _capture(self) -> CapturedStep[None]:
        """Return the step as a CUDA graph; the training's state stays the same."""
        if self._captured is None:
            device = self.images.device
            with self.keeping_state(), torch.backends.cudnn.flags(enabled=True, benchmark=True):
                warm_up(self._take, device, WARM_UP_STEPS)
                torch.cuda.synchronize(device)
                torch.cuda.empty_cache()  # a graph cannot use the memory that the warm-up left cached
                self._captured = capture(self._take, device)
        return self._captured

    @contextmanager
    def keeping_state(self) -> Iterator[None]:
        """Undo the steps taken inside: every tensor that they change gets its value back, in its own memory."""
        changed = [*self.weights, *self.averaged, self._loss_sum]
        values = [tensor.detach().clone() for tensor in changed]
        moments = {id(w): {k: v.clone() for k, v in self.optimizer.state[w].items()} for w in self.weights}
        steps, draws = self.steps, self.draws.get_state()
        yield
        self.steps = steps
        self.draws.set_state(draws)
        with torch.no_grad():
            for tensor, value in zip(changed, values, strict=True):
                tensor.copy_(value)
            for w in self.weights:
                for name, tensor in self.optimizer.state[w].items():
                    before = moments[id(w)].get(name)
                    if before is None:
                        tensor.zero_()  # an optimizer begins with zeros
                    else:
                        tensor.copy_(before)
