"""Which model an audit is of: what it computes, its weights and its source. Another identity is another audit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from recollect.devices.precision import apply_checked, device_of, evaluation_mode
from recollect.image_values import position_dimensions
from recollect.images import Images
from recollect.models import Adapted
from recollect.networks import Network
from recollect.records import short_hash

IMAGES = 4  # training images that the model is tried on, in three forms each, and as many of noise
SUMS = 4  # of each output
# Outputs are compared with a tolerance. One model gives other bits on another device or with another number of
# threads, and a resumed audit must then be the same audit. A hash of rounded values would break wherever a value lies
# at the edge of rounding. Programs that differ by less than rounding recover the same; all others start a new audit.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class ModelIdentity:
    """What tells a model from others: hashes of its weights and source, and sums over its outputs for fixed images."""

    weights: str
    source: str | None = None  # None for an object that was passed in
    outputs: tuple[tuple[float, ...], ...] | None = None  # None where outputs differ from call to call

    @property
    def hash(self) -> str:
        return short_hash([self.weights, self.source, self.outputs], digits=16)

    def matches(self, other: ModelIdentity) -> bool:
        """Whether both are one model, but for rounding."""
        if (self.weights, self.source) != (other.weights, other.source):
            return False
        if self.outputs is None or other.outputs is None:
            return self.outputs == other.outputs
        mine, others = np.array(self.outputs), np.array(other.outputs)
        if mine.shape != others.shape:
            return False
        return bool(np.abs(mine - others).max() <= TOLERANCE * max(1.0, np.abs(mine).max()))

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> ModelIdentity:
        """Read an identity from JSON."""
        identity = cls(recorded["weights"], recorded["source"])
        if recorded["outputs"] is None:
            return identity
        return replace(identity, outputs=tuple(tuple(map(float, row)) for row in recorded["outputs"]))


def identify(f: Any, images: Images, *, deterministic: bool, source: str | None) -> ModelIdentity:
    """Identify a model that takes images like these; `source` is the hash of what it was opened from."""
    outputs = output_sums(f, images) if deterministic else None
    return ModelIdentity(weights_hash(f), source, outputs)


def weights_hash(f: Any) -> str:
    """Hash the model's kind, how it is adapted, and its weights; not how many images it may be given at once."""
    if isinstance(f, Adapted) and f.how.plain:
        f = f.inner
    digest = hashlib.sha256(type(f).__name__.encode())
    if isinstance(f, Adapted):
        digest.update(repr(f.how).encode())
    weights = f.state_dict() if isinstance(f, nn.Module) else {}
    for name, value in weights.items():
        digest.update(name.encode())
        digest.update(_bytes(value) if isinstance(value, Tensor) else repr(value).encode())
    if isinstance(f, Network):
        digest.update(repr(f.settings).encode())  # equal weights under another activation are another network
    return digest.hexdigest()[:16]


@torch.no_grad()
def output_sums(f: Any, images: Images) -> tuple[tuple[float, ...], ...]:
    """Compute a few sums, with fixed random signs, over the model's output for each of the probe images."""
    probes = probe_images(images).to(device_of(f))
    with evaluation_mode(f):
        # A model that takes few images has passed its trial with as many as there are to train on.
        parts = probes.split(min(len(images), len(probes)))
        outputs = torch.cat([apply_checked(f, part) for part in parts]).detach().double().cpu().flatten(1)
    outputs = torch.nan_to_num(outputs, nan=1e6, posinf=1e7, neginf=-1e7)  # noise may be too much for a model
    signs = torch.randint(2, (outputs.shape[1], SUMS), generator=_generator(), dtype=torch.float64) * 2 - 1
    sums = outputs @ signs / math.sqrt(outputs.shape[1])
    return tuple(tuple(row) for row in sums.tolist())


def probe_images(images: Images) -> Tensor:
    """Make the images that a model is tried on: every perfect fit returns its training images, so damage them too."""
    few = images[:IMAGES].pixels
    damaged = few.flip(position_dimensions(few)[0]).where(few > few.mean(), 0.0)
    noise = torch.rand(IMAGES, *images.shape, generator=_generator())
    return torch.cat([few, few * 0.5, damaged, noise])


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _bytes(values: Tensor) -> bytes:
    values = values.detach().cpu()
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    if values.is_floating_point():
        values = values if values.dtype == torch.float64 else values.float()
    else:
        values = values.long()
    return np.ascontiguousarray(values.numpy()).tobytes()
