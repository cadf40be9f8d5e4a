"""What is recorded beside the numbers: the model, the images, every setting, versions and machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.auditing.diffusion_model import noise_level_facts
from recollect.auditing.generic_baseline import prior_facts
from recollect.auditing.inputs import Inputs
from recollect.auditing.method_facts import method_facts
from recollect.auditing.method_setup import names_with
from recollect.auditing.model_facts import damage_moved, describe_format, describe_model
from recollect.auditing.request import AuditRequest
from recollect.auditing.scope import scope_facts
from recollect.auditing.statistics import THRESHOLDS
from recollect.devices.precision import device_of
from recollect.engine import ARITHMETIC_IMAGES, arithmetic_of
from recollect.images import Images
from recollect.models.formats import ModelReference, find_format
from recollect.records import plain, provenance


def audit_facts(request: AuditRequest, inputs: Inputs) -> dict[str, Any]:
    """Describe an audit before its cells are measured."""
    sets = inputs.scored
    started = datetime.now(UTC).isoformat(timespec="seconds")
    arithmetic = arithmetic_of(inputs.model, sets["train"][:ARITHMETIC_IMAGES].pixels)
    return {
        "model": _model(request, inputs) | {"weights_given": weights_given(request)},
        "plan": request.plan.facts(request.gate) if request.plan else None,
        "methods": method_facts(inputs.methods),
        "scope": scope_facts(inputs, noise_std=request.noise_std),
        "settings": _settings(request, inputs),
        "control": None,
        **{name: _set_facts(name, images, inputs) for name, images in sets.items()},
        "prior": prior_facts(inputs.methods, sets),
        "provenance": provenance(device_of(inputs.model), started=started, products=arithmetic),
    }


def _model(request: AuditRequest, inputs: Inputs) -> dict[str, Any]:
    train = [damaged for damaged in inputs.damaged_sets if damaged.set == "train"]
    moved = damage_moved(inputs.model, train[0].images, (damaged.truth for damaged in train), request.chunk)
    identity = {"hash": inputs.identity.hash, "source": inputs.identity.source}
    described = describe_model(inputs.model, train[0].images, inputs.probe.deterministic, request.chunk)
    described |= noise_level_facts(inputs.model)
    return described | describe_format(request.model) | identity | {"damage_moved": moved}


def _set_facts(name: str, images: Images, inputs: Inputs) -> dict[str, Any]:
    """Describe the images that are scored, with the copies of training images: left out of control, kept in train."""
    facts: dict[str, Any] = {"name": images.name, "kind": images.kind, "images": len(images), "hash": images.hash}
    if name == "train":
        scored = set(images.ids)
        facts["repeated"] = [pair.first for pair in inputs.duplicates.inside if pair.first in scored]
    if name == "control":
        facts["copies_left_out"] = [
            {"image": pair.first, "training_image": pair.second, "mse": pair.mse, "moved": pair.moved}
            for pair in inputs.duplicates.across
        ]
    return facts


def weights_given(request: AuditRequest) -> bool | None:
    """Say whether weights were given to a factory; None for a model that has its own."""
    if not isinstance(request.model, (str, Path)):
        return None
    if not find_format(ModelReference(str(request.model))).takes_weights:
        return None
    return request.model_options.get("weights") is not None


def _settings(request: AuditRequest, inputs: Inputs) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "noise_std": request.noise_std,
        "seed": request.seed,
        "pictures": request.pictures,
        "methods": plain(inputs.methods),
        "without_model": names_with(inputs.methods, "sees_model", False),
        "masks": {damaged.mask: str(damaged.truth) for damaged in inputs.damaged_sets if damaged.set == "train"},
        "thresholds": THRESHOLDS,
        "gamma_and_start": "given, or the paper's",
    }
    if inputs.tuning:
        settings |= {
            "gamma_and_start": "searched, on training images left out of the score",
            "tried": inputs.tuning.tried,
            "tried_on_masks": inputs.tuning.masks,
            "tuning_images_left_out": inputs.tuning.images,
        }
    return settings
