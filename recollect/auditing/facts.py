"""What is recorded beside the numbers: the model, the images, every setting, versions and machine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from recollect.auditing.generic_baseline import prior_facts
from recollect.auditing.inputs import Inputs
from recollect.auditing.method_facts import method_facts
from recollect.auditing.method_setup import names_where
from recollect.auditing.model_facts import damage_moved, describe_model
from recollect.auditing.request import AuditRequest
from recollect.auditing.statistics import THRESHOLDS
from recollect.devices.precision import device_of
from recollect.engine import arithmetic_of
from recollect.records import plain, provenance


def audit_facts(request: AuditRequest, inputs: Inputs) -> dict[str, Any]:
    """Describe an audit before its cells are measured."""
    sets = inputs.scored
    started = datetime.now(UTC).isoformat(timespec="seconds")
    products = arithmetic_of(inputs.model, sets["train"].pixels)
    return {
        "model": _model(inputs),
        "methods": method_facts(inputs.methods),
        "settings": _settings(request, inputs),
        "control": None,
        **{name: {"name": s.name, "images": len(s), "hash": s.hash} for name, s in sets.items()},
        "prior": prior_facts(inputs.methods, sets),
        "provenance": provenance(device_of(inputs.model), started=started, products=products),
    }


def _model(inputs: Inputs) -> dict[str, Any]:
    train = [damaged for damaged in inputs.damaged_sets if damaged.set == "train"]
    moved = damage_moved(inputs.model, train[0].images, (damaged.truth for damaged in train))
    return describe_model(inputs.model, train[0].images, inputs.probe.deterministic) | {"damage_moved": moved}


def _settings(request: AuditRequest, inputs: Inputs) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "noise_std": request.noise_std,
        "seed": request.seed,
        "methods": plain(inputs.methods),
        "without_model": names_where(inputs.methods, "sees_model", False),
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
