"""The baseline of the field beside an audit: images that the model generates, and the training images among them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from recollect.auditing.inputs import Inputs
from recollect.auditing.progress import AuditProgress
from recollect.auditing.request import AuditRequest
from recollect.auditing.store import Store
from recollect.diffusion import DenoiserAt
from recollect.errors import InputError
from recollect.extraction import extract
from recollect.extraction.extract import describe_not_finite

LEFT_OUT = ("captures", "by_start")  # of an extraction's record: a row for each training image; counts are enough here


def generate_and_filter(
    request: AuditRequest, inputs: Inputs, store: Store, progress: AuditProgress
) -> dict[str, Any] | None:
    """Count the training images among so many generated ones; None if none are asked for."""
    if not request.samples:
        return None
    train, control = inputs.sets["train"], inputs.sets.get("control")
    identity = {
        "model": inputs.identity.hash, "train": train.hash, "control": control.hash if control else None,
        "samples": request.samples, "seed": request.seed,
    }  # fmt: skip
    extracted = store.once("generate-and-filter", identity, partial(_extracted, request, inputs, progress))
    if lost := extracted.get("not_finite"):
        warnings.warn(f"Generate and filter: {describe_not_finite(lost, extracted['samples'])}", stacklevel=2)
    return extracted


def _extracted(request: AuditRequest, inputs: Inputs, progress: AuditProgress) -> dict[str, Any]:
    model = inputs.model
    if isinstance(model, DenoiserAt):
        model = model.denoiser  # sampling takes all noise levels
    try:
        extraction = extract(
            model, inputs.sets["train"], control=inputs.sets.get("control"), samples=request.samples,
            seed=request.seed, chunk=request.chunk, progress=partial(progress, "generating images"),
        )  # fmt: skip
    except InputError as problem:
        raise InputError(f"{problem} The rest of the audit needs no samples: leave them out (--samples).") from None
    return {name: value for name, value in extraction.to_dict().items() if name not in LEFT_OUT}
