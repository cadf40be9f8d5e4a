"""A diffusion model in an audit: at one noise level it is an autoencoder, and the level is a setting like gamma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from recollect.auditing.given_settings import ANNEALED
from recollect.auditing.measure import Conditions
from recollect.auditing.method_setup import has_setting
from recollect.auditing.noise_levels import LEVELS, memory_by_noise_level
from recollect.auditing.progress import AuditProgress
from recollect.auditing.store import Store
from recollect.diffusion import AnnealedDenoiser, Denoiser, DenoiserAt
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind

FIRST_LEVEL = 0.2  # at which a model is opened and probed, before the search
CHARTED = 32  # images of each set in the chart of noise levels
MOST_ROUNDS = 10  # of blind and refined: later ones hardly change a denoiser's answers


def as_autoencoder(model: Any, noise_level: float | str | None) -> Any:
    """Fix the noise level of a diffusion model, the one given or a first one; other models stay as they are."""
    if isinstance(model, Denoiser):
        return model.at(_given(noise_level) or _within(model, FIRST_LEVEL), annealed=noise_level == ANNEALED)
    if noise_level is not None:
        raise InputError(
            "noise_level is for diffusion models: a folder, a pipeline, or Denoiser.of(f, shape). Leave it out."
        )
    return model


def noise_levels_to_try(f: DenoiserAt, noise_level: float | str | None) -> tuple[float | str, ...]:
    """List the noise levels to search and annealing beside them, or the one that was given."""
    if isinstance(f, AnnealedDenoiser):
        return (ANNEALED,)
    given = _given(noise_level)
    if given is not None:
        return (given,)
    low, high = f.denoiser.preconditioning.lowest, f.denoiser.preconditioning.highest
    return (*(level for level in LEVELS if low <= level <= high), ANNEALED)


def at_noise_level(f: Any, noise_level: float | str | None, otherwise: float | None = None) -> Any:
    """Return the model at another noise level; None and other models change nothing.

    An annealed model is at the level `otherwise` in calls that are no step of ADMM, by default at that of f.
    """
    if noise_level is None:
        return f
    if noise_level == ANNEALED:
        return f.denoiser.at(otherwise or f.sigma, annealed=True)
    return f.denoiser.at(noise_level)


def bounded(methods: Mapping[str, Any], f: Any) -> dict[str, Any]:
    """Bound the rounds of methods that an audit built itself; other models are given as many as the method says."""
    if not isinstance(f, DenoiserAt):
        return dict(methods)
    return {name: _bounded(method) for name, method in methods.items()}


def _bounded(method: Any) -> Any:
    in_rounds = has_setting(method, "gamma") and has_setting(method, "limit")
    return replace(method, limit=min(method.limit, MOST_ROUNDS)) if in_rounds else method


def check_measurer(f: Any, measurer: Any) -> None:
    """Refuse several machines: each would open the diffusion model without its noise level."""
    if measurer is not None and isinstance(f, DenoiserAt):
        raise InputError("A diffusion model is audited on one machine; leave the cluster out (--on).")


def noise_level_facts(f: Any) -> dict[str, Any]:
    """Describe the diffusion model that is audited; nothing for other models."""
    if not isinstance(f, DenoiserAt):
        return {}
    annealed = f.ends if isinstance(f, AnnealedDenoiser) else None
    return {"name": f.denoiser.name, "noise_level": f.sigma, "annealed": annealed, "denoiser": f.denoiser.hash}


def chart_noise_levels(
    f: Any, sets: Mapping[str, Images], methods: Mapping[str, Any], conditions: Conditions, store: Store,
    progress: AuditProgress,
) -> dict[str, Any]:  # fmt: skip
    """Measure a few images of each set at every noise level, with the gamma of the methods; null for other models."""
    if not isinstance(f, DenoiserAt):
        return {"noise_levels": None}
    gamma = next((float(method.gamma) for method in methods.values() if has_setting(method, "gamma")), Blind.gamma)
    progress("measuring where memory sits", 1, 1)  # the cells are done
    charted = {name: images[images.spread(min(CHARTED, len(images)))] for name, images in sets.items()}
    # The denoiser's own hash does not tell two functions of one name apart; the audit's does, by their outputs.
    identity = {"model": conditions.model_hash, "gamma": gamma, "seed": conditions.seed}
    identity |= {name: images.hash for name, images in charted.items()}
    rows = store.once("noise-levels", identity, partial(_rows, f.denoiser, charted, gamma, conditions))
    return {"noise_levels": rows["levels"]}


def _rows(denoiser: Denoiser, sets: Mapping[str, Images], gamma: float, conditions: Conditions) -> dict[str, Any]:
    train, control = sets["train"], sets.get("control")
    levels = memory_by_noise_level(denoiser, train, control, gamma=gamma, seed=conditions.seed, chunk=conditions.chunk)
    return {"levels": [level.row() for level in levels]}


def _given(noise_level: float | str | None) -> float | None:
    return None if noise_level is None or isinstance(noise_level, str) else float(noise_level)


def _within(denoiser: Denoiser, level: float) -> float:
    return min(max(level, denoiser.preconditioning.lowest), denoiser.preconditioning.highest)
