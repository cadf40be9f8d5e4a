"""Describe a model before it is attacked: its kind, fit and rounding."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.degradation import Degradation
from recollect.devices.precision import apply_checked, device_of, evaluation_mode, module_of, weights_of
from recollect.images import Images
from recollect.models import Adapted
from recollect.models.formats import ModelReference, find_format
from recollect.networks import Network
from recollect.records import plain
from recollect.scoring import mse

CHUNK = 256


def describe_model(f: Any, images: Images, deterministic: bool, chunk: int | None = None) -> dict[str, Any]:
    """Describe a model for an audit's record."""
    inner = f.inner if isinstance(f, Adapted) else f
    facts: dict[str, Any] = {"name": getattr(inner, "__name__", type(inner).__name__)}
    if (network := module_of(f)) is not None:
        facts["parameters"] = sum(p.numel() for p in network.parameters())
    if isinstance(f, Adapted):
        facts["adapted"] = plain(f.how)
    if (audited_as := getattr(inner, "audited_as", None)) is not None:
        facts["audited_as"] = audited_as
    if isinstance(inner, Network):
        facts["network"] = {"kind": inner.name, "summary": inner.summary, **plain(inner.settings)}
    facts["train_loss"] = train_loss(f, images, chunk)
    facts["rounding"] = rounding(f, images[:16]) if deterministic else None
    return facts


def describe_format(model: Any) -> dict[str, Any]:
    """Describe the format of a model that is given by file or name."""
    if not isinstance(model, str | Path):
        return {}
    model_format = find_format(ModelReference(str(model)))
    return {"format": {"kind": model_format.name, "summary": model_format.summary}}


@torch.no_grad()
def train_loss(f: Any, images: Images, chunk: int | None = None) -> float:
    """Compute the autoencoder's own error on images, in full float32."""
    device, errors = device_of(f), []
    chunk = min(CHUNK, chunk or CHUNK)
    with evaluation_mode(f):
        for i in range(0, len(images), chunk):
            x = images[i : i + chunk].pixels.to(device)
            errors.append(mse(apply_checked(f, x.clone()), x))  # a copy, for networks that work in place
    return float(torch.cat(errors).mean())


@torch.no_grad()
def damage_moved(f: Any, images: Images, truths: Iterable[Degradation], chunk: int | None = None) -> float | None:
    """Compute how far the model moves damaged images, as a share of the damage (MSE): 0 if it copies its input.

    None where nothing was damaged: all that is erased was black before.
    """
    x = images[: min(CHUNK, chunk or CHUNK)].pixels.to(device_of(f))
    moved = damage = 0.0
    with evaluation_mode(f):
        for truth in truths:
            y = truth[: len(x)].to(x.device).apply(x)
            moved += float(mse(apply_checked(f, y.clone()), y).mean())
            damage += float(mse(y, x).mean())
    return moved / damage if damage else None


@torch.no_grad()
def rounding(f: Any, images: Images) -> float | None:
    """Compute the MSE that float32 alone puts into the output, against float64; None if float64 cannot run."""
    if not any(weights.is_floating_point() for weights in weights_of(f)):
        return None
    x = images.pixels.to(device_of(f))
    double = as_float64(f, x)
    if double is None:
        return None
    with evaluation_mode(f), evaluation_mode(double):
        return float(mse(apply_checked(f, x.clone()), apply_checked(double, x.double())).mean())


@torch.no_grad()
def as_float64(f: Any, x: Tensor) -> Any:
    """Copy a model in float64; None if it cannot run on these images, for its code may fix float32."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch's own, of how it copies an exported program
            double = copy.deepcopy(f)
        if (network := module_of(double)) is not None:
            network.double()
        with evaluation_mode(double):
            out = double(x.to(device_of(double)).double())
        return double if out.dtype == torch.float64 and out.shape == x.shape else None
    except Exception:  # a foreign model may raise anything
        return None
