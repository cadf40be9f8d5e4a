"""Which training image did a recovery end on? The nearest one and its error, in bounded memory."""

from __future__ import annotations

import torch
from torch import Tensor

from recollect.auditing.outcomes import Nearest
from recollect.images import Images
from recollect.nearest import ROWS, nearest_candidates
from recollect.scoring import mse


def find_nearest(estimates: Tensor, training: Images, device: torch.device | str = "cpu") -> Nearest:
    """Compare every estimate with every training image by matrix products, and the nearest one once more exactly."""
    finite = torch.isfinite(estimates).flatten(1).all(1).cpu()
    index = nearest_candidates(estimates, training, device=device)[:, 0]
    errors = [
        mse(estimates[top : top + ROWS].cpu(), training[index[top : top + ROWS].numpy()].pixels)
        for top in range(0, len(estimates), ROWS)
    ]
    nearest = Nearest([], [], [])
    for is_finite, position, error in zip(finite.tolist(), index.tolist(), torch.cat(errors).tolist(), strict=True):
        if is_finite:
            nearest.add(training.ids[position], error, position)
        else:
            nearest.add(None, None, None)
    return nearest
