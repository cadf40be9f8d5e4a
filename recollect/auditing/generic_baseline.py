"""Restoration without the audited model: the diffusion prior, and what the record says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from recollect.auditing.method_setup import has_setting, names_with, unbuilt
from recollect.diffusion import Denoiser, bundled, open_denoiser
from recollect.errors import InputError
from recollect.images import Images

_UNKNOWN = {
    "trained_on": "unknown", "training_images": None, "training_images_hash": None, "known_to_it": "unknown",
}  # fmt: skip


def prior_for(methods: Mapping[str, Any], prior: Any, device: torch.device) -> Any:
    """Open the prior if a method still to be built takes one; None gives the bundled prior."""
    if not any(unbuilt(method) and method.takes("prior") for method in methods.values()):
        return None
    if prior is None:
        return bundled(device)
    return open_denoiser(prior, device=device) if isinstance(prior, (str, Path)) else prior


def check_one_prior(methods: Mapping[str, Any]) -> None:
    """Refuse two priors: what an audit attributes to the model is measured against one."""
    if len({id(methods[name].prior) for name in _by_prior(methods)}) > 1:
        raise InputError("An audit takes one diffusion prior, to which it can attribute; here are several.")


def prior_facts(methods: Mapping[str, Any], sets: Mapping[str, Images]) -> dict[str, Any] | None:
    """Describe the prior: its training images, and how many of the audited images are among them."""
    by_prior = _by_prior(methods)
    if not by_prior:
        return None
    prior = methods[by_prior[0]].prior
    beside = [name for name in names_with(methods, "sees_model", False) if name not in by_prior]
    return {**_described(prior, sets), "methods": by_prior, "beside": beside}


def _by_prior(methods: Mapping[str, Any]) -> list[str]:
    return [name for name in names_with(methods, "sees_model", False) if has_setting(methods[name], "prior")]


def _described(prior: Any, sets: Mapping[str, Images]) -> dict[str, Any]:
    if not isinstance(prior, Denoiser):
        return {"name": type(prior).__name__, "weights": None, "hash": None, **_UNKNOWN}
    named = {"name": prior.name, "weights": prior.weights_hash, "hash": prior.hash}
    if prior.card is None:
        return {**named, **_UNKNOWN}
    return {
        **named,
        "trained_on": prior.card.trained_on,
        "training_images": prior.card.images,
        "training_images_hash": prior.card.images_hash,
        "known_to_it": {name: vars(prior.card.overlap(images)) for name, images in sets.items()} or "unknown",
    }
