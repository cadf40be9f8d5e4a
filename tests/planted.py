"""An autoencoder that memorizes without training: softmax attention over stored images."""

import torch
from torch import Tensor


class Memorizer:
    """x -> the mean of the stored images, weighted by how near to x they lie; each stored image is a fixed point."""

    def __init__(self, stored: Tensor, sharpness: float = 60.0) -> None:
        self.stored = stored
        self.sharpness = sharpness
        self._converted: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}

    def __call__(self, x: Tensor) -> Tensor:
        stored, doubled = self._stored_like(x)
        distances = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").square()
        weights = torch.softmax(-self.sharpness * distances, 1)
        return (weights.double() @ doubled).to(x).view_as(x)  # the same bits in batches of any size

    def _stored_like(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The stored images as rows of the type of x, and these in float64; converted once, as tests call it often."""
        key = x.dtype, x.device
        if key not in self._converted:
            rows = self.stored.to(x).flatten(1)
            self._converted[key] = rows, rows.double()
        return self._converted[key]
