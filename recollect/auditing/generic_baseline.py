"""What restores images without the autoencoder: a prior, opened before any work, with what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from recollect.auditing.request import Place
from recollect.degradation import Erasure
from recollect.diffusion import Prior, bundled, open_prior
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import DDNM, Biharmonic

# Beyond the paper's settings, at twice the cost: the best that a generic prior can do is what counts here.
STRONGEST: Mapping[str, Any] = {"steps": 50, "eta": 1.0, "spacing": "quadratic", "draws": 4}


def with_prior(
    methods: Mapping[str, Any], prior: Any, places: Sequence[Place], device: torch.device, seed: int
) -> dict[str, Any]:
    """The methods, with `ddnm` made of the prior that was asked for; what cannot work is told before any work."""
    if prior is not None and "ddnm" not in methods.values():
        raise InputError("A prior is for the method ddnm; add ddnm to the methods.")
    other = next((p.mask for p in places if not isinstance(p.truth, Erasure)), None)
    made = dict(methods)
    for name, method in methods.items():
        if other and (method in ("ddnm", "biharmonic") or sees_no_model(method)):
            raise InputError(f"{name} restores erased pixels and cannot undo {other}; leave one of the two out.")
        if method == "ddnm":
            made[name] = DDNM(_opened(prior, device), **STRONGEST, seed=seed)
            made[name].check_shape(*places[0].images.shape)
    if len({id(m.prior) for m in made.values() if isinstance(m, DDNM)}) > 1:
        raise InputError("An audit takes one diffusion prior, to which it can attribute; here are several.")
    return made


def sees_no_model(method: Any) -> bool:
    return isinstance(method, (DDNM, Biharmonic))


def _opened(prior: Any, device: torch.device) -> Any:
    if prior is None:
        return bundled(device)
    return open_prior(prior, device=device) if isinstance(prior, (str, Path)) else prior


def prior_facts(methods: Mapping[str, Any], sets: Mapping[str, Images]) -> dict[str, Any] | None:
    """What the record says of the prior: its training images, and how many of the audited ones are among them."""
    by_prior = [name for name, method in methods.items() if isinstance(method, DDNM)]
    if not by_prior:
        return None
    prior = methods[by_prior[0]].prior
    card = prior.card if isinstance(prior, Prior) else None
    overlap = {name: card.overlap(images) for name, images in sets.items()} if card else {}
    return {
        "name": prior.name if isinstance(prior, Prior) else type(prior).__name__,
        "weights": prior.weights_hash if isinstance(prior, Prior) else None,
        "trained_on": card.trained_on if card else "unknown",
        "training_images": card.images if card else None,
        "training_images_hash": card.images_hash if card else None,
        "methods": by_prior,
        "beside": [name for name, method in methods.items() if isinstance(method, Biharmonic)],
        "known_to_it": {name: vars(found) for name, found in overlap.items()} or "unknown",
    }
