"""An autoencoder that memorizes without training: softmax attention over stored images."""

import torch
from torch import Tensor


class Memorizer:
    """x -> the mean of the stored images, weighted by how near to x they lie; each stored image is a fixed point."""

    def __init__(self, stored: Tensor, sharpness: float = 60.0) -> None:
        self.stored = stored
        self.sharpness = sharpness

    def __call__(self, x: Tensor) -> Tensor:
        stored = self.stored.to(x).flatten(1)
        distances = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        weights = torch.softmax(-self.sharpness * distances, 1)
        return (weights.double() @ stored.double()).to(x).view_as(x)  # the same bits in batches of any size
