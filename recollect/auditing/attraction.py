"""Are training images attractors of the model, and is that what lets them be recovered?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from recollect.attractors import fixed_point_error, spectral_radius
from recollect.auditing.measure import Narrator
from recollect.auditing.store import Store
from recollect.devices.precision import device_of
from recollect.errors import InputError
from recollect.images import Images
from recollect.records import Record
from recollect.scoring import ACCURATE

Row = dict[str, Any]


def examine(f: Any, images: Images, model_hash: str, store: Store, narrate: Narrator) -> list[Row]:
    """Fixed-point error and spectral radius at each image; every image is on disk as soon as it is known."""
    rows = []
    for i, name in enumerate(images.ids):
        narrate("looking for attractors", i, len(images))
        image = images[i]
        identity = {"model": model_hash, "image": image.hash}
        found = store.once("attractor", identity, partial(_around, f, image.pixels))
        rows.append({"id": name, **found})
    narrate("looking for attractors", len(images), len(images))
    return rows


def with_outcome(rows: Sequence[Row], records: Sequence[Record]) -> list[Row]:
    """Whether each image was recovered accurately, in any of these records."""
    best: dict[str, float] = {}
    for record in records:
        for name, error in zip(record.ids, record.score.mse.tolist(), strict=True):
            best[name] = min(best.get(name, math.inf), error)
    return [{**row, "recovered": best.get(row["id"], math.inf) < ACCURATE} for row in rows]


def _around(f: Any, image: torch.Tensor) -> Row:
    """An attractor is a fixed point, as exactly as recovery is judged, with all eigenvalues inside the unit circle."""
    x = image.to(device_of(f))
    error = float(fixed_point_error(f, x))
    try:
        radius = spectral_radius(f, x)
    except InputError:
        raise
    except Exception as problem:  # a foreign model may have no derivatives, or refuse torch.func in its own way
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]
        raise InputError(f"The Jacobian of this model cannot be taken ({reason}).") from problem
    return {
        "fixed_point_error": error, "spectral_radius": radius,
        "attractor": error < ACCURATE and math.isfinite(radius) and radius < 1,
    }  # fmt: skip
