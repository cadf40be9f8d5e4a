"""Values in the configuration of a diffusion model. A file may hold anything there: each is read as what it must be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from recollect.errors import is_number, is_whole

Config = Mapping[str, Any]
LONGEST = 40  # characters of a value in a sentence
LEAST, MOST = 1e-9, 1e9  # of a positive number: squares of these and of their ratios are finite


class Unusable(Exception):
    """Why a model that may be whole is no denoiser of images, as the end of a sentence."""


def read_count(part: str, config: Config, name: str, otherwise: int) -> int:
    """Read a whole number of 1 or more, or take another where the part says nothing of it."""
    value = config.get(name, otherwise)
    if not is_whole(value, 1):
        raise Unusable(f"its {part} has {name} = {_shown(value)}, which is no whole number of 1 or more")
    return int(value)


def read_number(part: str, config: Config, name: str, otherwise: float, least: float = LEAST) -> float:
    """Read a number within bounds, or take another where it is left out or null."""
    value = config.get(name)
    if value is None:
        return otherwise
    if not is_number(value) or not least <= value <= MOST:
        raise Unusable(f"its {part} has {name} = {_shown(value)}, which is no number from {least:g} to {MOST:g}")
    return float(value)


def read_prediction(config: Config, known: Collection[str]) -> str:
    """Read what a network returns."""
    value = config.get("prediction_type", "epsilon")
    if not isinstance(value, str) or value not in known:
        raise Unusable(f"it predicts {_shown(value)}; known are {', '.join(known)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
