"""Are training images attractors of the model, and does that explain which of them are recovered?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from recollect.attractors import SpectralRadius, fixed_point_error, spectral_radius
from recollect.auditing.progress import AuditProgress
from recollect.auditing.store import Store
from recollect.devices.precision import device_of
from recollect.errors import InputError, first_line
from recollect.images import Images
from recollect.records import Record
from recollect.scoring import ACCURATE, Score

Row = dict[str, Any]


@dataclass(frozen=True)
class Attraction:
    """The rows of the images examined, or why the model could not be examined."""

    rows: list[Row] | None
    problem: str = ""


def examine(f: Any, images: Images, model_hash: str, store: Store, progress: AuditProgress) -> Attraction:
    """Examine each image; a model without derivatives does not cost the audit its other results."""
    try:
        return Attraction(examine_images(f, images, model_hash, store, progress))
    except InputError as error:
        return Attraction(None, str(error))


def examine_images(f: Any, images: Images, model_hash: str, store: Store, progress: AuditProgress) -> list[Row]:
    """Compute fixed-point error and spectral radius at each image; each result is stored at once."""
    rows = []
    for i, name in enumerate(images.ids):
        progress("searching for attractors", i, len(images))
        image = images[i]
        identity = {"model": model_hash, "image": image.hash}
        rows.append({"id": name, **store.once("attractor", identity, partial(_around, f, image.pixels))})
    progress("searching for attractors", len(images), len(images))
    return rows


def with_outcome(rows: Sequence[Row], records: Sequence[Record]) -> list[Row]:
    """Add whether each image was recovered accurately in any of these records, which are of the same images."""
    best: dict[str, float] = {}
    if records:
        errors = Score.best_of([record.score for record in records]).mse.tolist()
        best = dict(zip(records[0].ids, errors, strict=True))
    return [{**row, "recovered": best.get(row["id"], math.inf) < ACCURATE} for row in rows]


def _around(f: Any, image: torch.Tensor) -> Row:
    """Measure how far the model moves an image and how it treats the surroundings."""
    x = image.to(device_of(f))
    error = float(fixed_point_error(f, x))
    try:
        radius = spectral_radius(f, x, is_batch=True)
    except InputError:
        raise
    except Exception as problem:  # a foreign model may have no derivatives, or refuse torch.func with any error
        raise InputError(f"The Jacobian of this model cannot be taken ({first_line(problem)}).") from problem
    return {
        "fixed_point_error": error,
        "spectral_radius": radius.value,
        "converged": radius.converged,
        "attractor": is_attractor(error, radius),
    }


def is_attractor(error: float, radius: SpectralRadius) -> bool | None:
    """Say whether iteration near the image ends at the image, as exactly as recovery is judged; None: undecided.

    A step of size e leads to a fixed point at a distance of e / (1 - radius), since every further step adds to it.
    """
    if not error < ACCURATE:
        return False
    if radius.below_one is None:
        return None
    return radius.below_one and error / (1 - radius.value) ** 2 < ACCURATE
