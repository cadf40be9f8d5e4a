"""What an audit covers: the attacker that is assumed, and the methods that were not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.auditing.inputs import Inputs
from recollect.auditing.method_setup import attacks, class_value, names_with
from recollect.diffusion import DenoiserAt
from recollect.methods import METHODS

FACTS = ("summary", "knows_truth", "sees_model")


def scope_facts(inputs: Inputs, *, noise_std: float) -> dict[str, Any]:
    """Describe the attacker, and every registered method for such a model that this audit leaves out."""
    besides = {class_value(method, "name") for method in inputs.methods.values()}
    if not isinstance(inputs.model, DenoiserAt) or inputs.model.denoiser.latent:
        besides |= set(names_with(METHODS, "only_diffusion"))
    left_out = {name: method for name, method in METHODS.items() if name not in besides}
    return {
        "attacker": list(_attacker(inputs, noise_std)),
        "not_run": {name: {fact: class_value(method, fact) for fact in FACTS} for name, method in left_out.items()},
    }


def _attacker(inputs: Inputs, noise_std: float) -> Iterator[str]:
    """Say what the attacker has, knows and does not know."""
    yield (
        "The attacker runs the model on any image, as often as needed, and sees every output. No attack reads the "
        "weights or uses gradients."
    )
    masks = dict.fromkeys(damaged.mask for damaged in inputs.damaged_sets)
    noise = f", with noise of standard deviation {noise_std:g}" if noise_std else ""
    yield f"The attacker holds a damaged copy of each attacked image{noise}. Damage: {', '.join(masks)}."
    if attacks(inputs.methods):
        yield "The attacker does not know the original image, which pixels were erased, or what the erased pixels held."
    else:
        yield "Every method of this audit knows more than an attacker would: which pixels were erased."
    if inputs.tuning:
        yield (
            f"The attacker knows settings that suit this model. They were searched on {len(inputs.tuning.images)} "
            "training images, which are left out of every rate."
        )
