"""Describe a model before it is attacked: its identity, fit and rounding."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from recollect.degradation import Degradation
from recollect.devices.precision import device_of, evaluation_mode, module_of
from recollect.images import Images
from recollect.models import Adapted
from recollect.networks import Network
from recollect.records import plain
from recollect.scoring import mse

CHUNK = 256


def describe_model(f: Any, images: Images, deterministic: bool) -> dict[str, Any]:
    """Describe a model for an audit's record."""
    inner = f.inner if isinstance(f, Adapted) else f
    facts: dict[str, Any] = {"name": getattr(inner, "__name__", type(inner).__name__)}
    if (network := module_of(f)) is not None:
        facts["parameters"] = sum(p.numel() for p in network.parameters())
    if isinstance(f, Adapted):
        facts["adapted"] = plain(f.how)
    if isinstance(inner, Network):
        facts["network"] = plain(inner.settings)
    facts["train_loss"] = train_loss(f, images)
    facts["rounding"] = rounding(f, images[:16]) if deterministic else None
    return facts | {"hash": fingerprint(f, images)}


@torch.no_grad()
def train_loss(f: Any, images: Images, chunk: int = CHUNK) -> float:
    """Compute the autoencoder's own error on images, in full float32."""
    device, errors = device_of(f), []
    with evaluation_mode(f):
        for i in range(0, len(images), chunk):
            x = images[i : i + chunk].pixels.to(device)
            errors.append(mse(f(x.clone()), x))  # a copy, for networks that work in place
    return float(torch.cat(errors).mean())


@torch.no_grad()
def damage_moved(f: Any, images: Images, truths: Iterable[Degradation]) -> float | None:
    """Compute how far the model moves damaged images, as a share of the damage (MSE): 0 if it copies its input.

    None where nothing was damaged: all that is erased was black before.
    """
    x = images[:CHUNK].pixels.to(device_of(f))
    moved = damage = 0.0
    with evaluation_mode(f):
        for truth in truths:
            y = truth[: len(x)].to(x.device).apply(x)
            moved += float(mse(f(y.clone()), y).mean())
            damage += float(mse(y, x).mean())
    return moved / damage if damage else None


@torch.no_grad()
def rounding(f: Any, images: Images) -> float | None:
    """Compute the MSE that float32 alone puts into the output, against float64; None if float64 cannot run."""
    if not isinstance(f, nn.Module) or not any(p.is_floating_point() for p in f.parameters()):
        return None
    x = images.pixels.to(device_of(f))
    try:
        double = copy.deepcopy(f).double()
        with evaluation_mode(f), evaluation_mode(double):
            exact, rounded = double(x.double()), f(x.clone())
        return float(mse(rounded, exact).mean()) if exact.dtype == torch.float64 else None
    except Exception:  # a foreign model may be fixed to float32 in any way
        return None


@torch.no_grad()
def fingerprint(f: Any, images: Images) -> str:
    """Hash the model: its kind, how it is adapted and its weights; its outputs if it has no weights."""
    digest = hashlib.sha256(type(f).__name__.encode())
    if isinstance(f, Adapted):
        digest.update(repr(f.how).encode())
    weights = f.state_dict() if isinstance(f, nn.Module) else {}
    for name, value in weights.items():
        digest.update(name.encode() + (_bytes(value) if isinstance(value, Tensor) else repr(value).encode()))
    if isinstance(f, Network):
        digest.update(repr(f.settings).encode())  # equal weights under another activation are another network
    if not weights:
        few = images[:4].pixels.to(device_of(f))
        with evaluation_mode(f):  # every perfect fit returns its training images, so damaged ones tell models apart
            for x in (few, few * 0.5, few.flip(2).where(few > few.mean(), 0.0)):
                digest.update(_bytes(f(x.clone())))
    return digest.hexdigest()[:16]


def _bytes(values: Tensor) -> bytes:
    values = values.detach().cpu()
    values = values if values.dtype in (torch.float64, torch.int64) else values.float()
    return np.ascontiguousarray(values.numpy()).tobytes()
