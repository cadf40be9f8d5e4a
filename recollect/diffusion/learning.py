"""Teaching a network what noise is: one step of it, and everything that has to be kept to go on later."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recollect.diffusion.network import SCHEDULES, WIDTHS
from recollect.diffusion.prior import v_target
from recollect.errors import InputError

WARMED_UP = 0.05  # part of the time after which the rate has risen, however few the steps


@dataclass(frozen=True)
class PriorRecipe:
    """How a prior is trained; the defaults are for images of 32x32 and less."""

    widths: tuple[int, ...] = WIDTHS
    schedule: str = "cosine"
    rate: float = 8e-4
    batch: int = 512
    warm_up: int = 500  # steps in which the rate rises, or a twentieth of the time; it falls with the time that is left
    average: float = 0.999  # of the weights, over 1 / (1 - average) steps, or a twentieth of all if that is less
    flip: bool = True  # images are as often seen mirrored
    seed: int = 42

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise InputError(f"There is no schedule {self.schedule!r}; choose from {', '.join(SCHEDULES)}.")
        if not self.rate > 0 or self.batch < 1 or self.warm_up < 0 or not 0 <= self.average < 1:
            raise InputError(f"A prior's recipe needs a positive rate and batch and an average in [0, 1), got {self}.")

    @classmethod
    def for_size(cls, side: int, device: torch.device | str, **settings: Any) -> PriorRecipe:
        """For images of so many pixels a side: larger ones are halved once more where that can be, and a batch has as
        many pixels. On a CPU batches are small: a step of 512 images would take minutes."""
        larger: dict[str, Any] = {"rate": 5e-4, "batch": 128} if side > 32 else {}
        larger |= {"widths": (64, 96, 128, 128)} if side > 32 and side % 8 == 0 else {}
        slower = {"batch": 16, "rate": 3e-4} if torch.device(device).type == "cpu" else {}
        return cls(**{**larger, **slower, **settings})


class Learner:
    """The network, its averaged copy, the optimizer and the draws; images are 8-bit and stay on the device."""

    def __init__(self, network: Any, alphas_cumprod: Tensor, images: Tensor, recipe: PriorRecipe) -> None:
        self.recipe, self.images = recipe, images
        self.network = network.to(images.device, memory_format=torch.channels_last).train()
        self.averaged = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.alphas = alphas_cumprod.to(images.device, torch.float32)
        fused = images.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), recipe.rate, (0.9, 0.99), weight_decay=0, fused=fused
        )
        self.draws = torch.Generator(images.device).manual_seed(recipe.seed)
        self.predict: Callable[..., Any] = self.network
        self.steps = 0
        self.seconds = 0.0  # spent so far, in this run and earlier ones

    def step(self, part_done: float) -> Tensor:
        """One step, when this part of the time is over; returns the loss, still on the device."""
        x, noise, t = self._batch()
        a = self.alphas[t].view(-1, 1, 1, 1)
        noisy = (torch.sqrt(a) * x + torch.sqrt(1 - a) * noise).contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.device.type == "cuda"):
            predicted = self.predict(noisy, t, return_dict=False)[0]
        loss = (predicted.float() - v_target(x, noise, a)).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(part_done)
        self.optimizer.step()
        self.steps += 1
        self._follow()
        return loss.detach()

    def rate(self, part_done: float) -> float:
        """The learning rate: up over the first steps, down along a cosine over the whole time."""
        rising = min(1.0, max((self.steps + 1) / max(1, self.recipe.warm_up), part_done / WARMED_UP))
        return self.recipe.rate * rising * 0.5 * (1 + math.cos(math.pi * min(1.0, part_done)))

    def compile(self) -> None:
        """Fused kernels, where they can be had."""
        self.predict = torch.compile(self.network)

    def state(self) -> dict[str, Any]:
        """Everything that a later run needs to go on."""
        return {
            "network": self.network.state_dict(), "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(), "draws": self.draws.get_state(),
            "steps": self.steps, "seconds": self.seconds,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.draws.set_state(state["draws"].cpu())
        self.steps, self.seconds = state["steps"], state["seconds"]

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Images in [-1, 1], noise, and time steps spread evenly over the batch."""
        count, device = self.recipe.batch, self.images.device

        def uniform(size: int) -> Tensor:
            return torch.rand(size, generator=self.draws, device=device)

        chosen = (uniform(count) * len(self.images)).long().clamp(max=len(self.images) - 1)
        x = self.images[chosen].float() / 127.5 - 1
        if self.recipe.flip:
            x = torch.where((uniform(count) < 0.5).view(-1, 1, 1, 1), x.flip(3), x)
        spread = (torch.arange(count, device=device) + uniform(1)) / count  # less noise in the loss than free draws
        t = (spread * len(self.alphas)).long().clamp(max=len(self.alphas) - 1)
        noise = torch.randn(x.shape, generator=self.draws, device=device)
        return x, noise, t

    @torch.no_grad()
    def _follow(self) -> None:
        weight = max(1 - self.recipe.average, 1 / max(10, self.steps / 20))  # what is long past counts no more
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self.network.parameters()), weight)
