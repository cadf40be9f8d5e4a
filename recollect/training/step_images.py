"""The images of a training step: a batch of the set, shifted or with noise if the recipe says so."""

from __future__ import annotations

import torch
from torch import Tensor

from recollect.training.augmentation import shifted
from recollect.training.recipe import Recipe


class StepImages:
    """What the network is given at a step, and what it has to return; both stay in place, for a CUDA graph."""

    def __init__(self, images: Tensor, recipe: Recipe) -> None:
        self._images, self._recipe = images, recipe
        self._in_batches = recipe.batch is not None and recipe.batch < len(images)
        self.wanted = images
        if self._in_batches or recipe.shift:
            self.wanted = images[: recipe.batch].clone()
        self.given = self.wanted.clone() if recipe.input_noise else self.wanted
        self.generator = torch.Generator(images.device).manual_seed(recipe.seed)
        self.order = torch.empty(0, dtype=torch.int64, device=images.device)  # images still to come in this epoch

    def draw(self) -> None:
        """Make the images of the next step."""
        recipe = self._recipe
        if self._in_batches:
            self._draw_batch()
        if recipe.shift:
            source = self.wanted if self._in_batches else self._images
            self.wanted.copy_(shifted(source, recipe.shift, self.generator))
        if recipe.input_noise:
            noise = torch.empty_like(self.wanted).normal_(generator=self.generator)
            self.given.copy_(self.wanted + recipe.input_noise * noise)

    def _draw_batch(self) -> None:
        """Take the next images of a shuffled pass over the set."""
        size = len(self.wanted)
        if len(self.order) < size:
            self.order = torch.randperm(len(self._images), generator=self.generator, device=self._images.device)
        self.wanted.copy_(self._images[self.order[:size]])
        self.order = self.order[size:]
