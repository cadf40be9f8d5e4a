"""Which training image did a recovery end on? The nearest one and its error, in bounded memory."""

from __future__ import annotations

import torch
from torch import Tensor

from recollect.auditing.outcomes import Nearest
from recollect.images import Images, as_float32
from recollect.nearest import ALL_COMPARED, ROWS, candidates_by_averages, nearest_candidates
from recollect.scoring import mse

CANDIDATES = 4  # training images of a large set that are compared with an estimate by their pixels


def find_nearest(
    estimates: Tensor, training: Images, device: torch.device | str = "cpu", all_compared: int = ALL_COMPARED
) -> Nearest:
    """Find the training image nearest to each estimate, and its error.

    A set of up to `all_compared` images is compared by its pixels. In a larger one, averages over a grid choose
    four images of the set, and the nearest of these by pixels is taken: whatever lies within a threshold has near
    averages too.
    """
    finite = torch.isfinite(estimates).flatten(1).all(1).cpu()
    if len(training) > all_compared:
        index, errors = _nearest_of_many(estimates, training, device)
    else:
        index = nearest_candidates(estimates, training, device=device)[:, 0]
        errors = _errors(estimates, training, index, device)
    nearest = Nearest([], [], [])
    for is_finite, position, error in zip(finite.tolist(), index.tolist(), errors.tolist(), strict=True):
        if is_finite:
            nearest.add(training.ids[position], error, position)
        else:
            nearest.add(None, None, None)
    return nearest


def _nearest_of_many(estimates: Tensor, training: Images, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Compare candidates, the likeliest first, with the estimates that could still gain by it."""
    candidates, bounds = candidates_by_averages(estimates, training, CANDIDATES, device)
    index, errors = candidates[:, 0].clone(), _errors(estimates, training, candidates[:, 0], device)
    for number in range(1, candidates.shape[1]):
        rows = torch.nonzero(bounds[:, number] < errors)[:, 0]
        if not len(rows):
            break
        other = candidates[rows, number]
        distance = _errors(estimates[rows.to(estimates.device)], training, other, device)
        closer = distance < errors[rows]
        index[rows[closer]], errors[rows[closer]] = other[closer], distance[closer]
    return index, errors


def _errors(estimates: Tensor, training: Images, index: Tensor, device: torch.device | str) -> Tensor:
    """Compute the error of each estimate as an estimate of the training image at its position."""
    errors = []
    for rows, positions in zip(estimates.split(ROWS), index.split(ROWS), strict=True):
        originals = as_float32(training.stored_at(positions).to(device))
        errors.append(mse(rows.to(device), originals).cpu())
    return torch.cat(errors)
