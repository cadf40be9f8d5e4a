"""Settings of an audit that are checked as they are given, without torch: a mistake is refused before its import."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from recollect.auditing.thresholds import read_threshold
from recollect.auditing.verdict import Gate
from recollect.errors import InputError, check_positive, check_seed, is_number, is_whole
from recollect.mask_names import FILL_SUMMARIES

AUTO = "auto"  # search for the setting
ANNEALED = "annealed"  # in place of a diffusion model's noise level: it falls along the steps of ADMM
START_NAMES = ("half_kept", "all_erased")


def check_given(settings: Mapping[str, Any]) -> None:
    """Refuse what cannot be meant; settings have the names that they have in `AuditRequest`."""
    _check_images(settings["train"], settings["control"], settings["canaries"])
    _check_numbers(settings)
    check_positive("gamma", settings["gamma"], AUTO)
    check_positive("noise_level", settings["noise_level"], AUTO, ANNEALED)
    if settings["start"] not in (None, AUTO, *START_NAMES):
        raise InputError(f"There is no start mask {settings['start']!r}; choose {', '.join(START_NAMES)} or {AUTO}.")
    fills = read_fills(settings["fill"])
    read_gate(settings["fail_above"], settings["threshold"])
    if settings["canaries"] is not None and "images" in fills:
        raise InputError("With canaries the fill is not images: pixels of other canaries would tell their coins.")


def read_fills(fill: Any) -> list[str]:
    """Read the names of fills, each once."""
    kinds = list(dict.fromkeys(str(kind) for kind in split_names(fill)))
    unknown = [kind for kind in kinds if kind not in FILL_SUMMARIES]
    if unknown or not kinds:
        raise InputError(f"There is no fill {(unknown or [fill])[0]!r}; choose from {', '.join(FILL_SUMMARIES)}.")
    return kinds


def read_gate(fail_above: Any, threshold: Any) -> Gate | None:
    """Read the limit that an audit is held to; None if there is none."""
    read = read_threshold(threshold)
    if fail_above is None:
        return None
    if not is_number(fail_above) or not 0 <= fail_above < 1:
        raise InputError(f"fail_above is a share of the training images, 0 to below 1; got {fail_above!r}.")
    return Gate(float(fail_above), read)


def split_names(names: Any) -> list[Any]:
    """Split names at commas; a sequence stays as it is."""
    if isinstance(names, str):
        return [part.strip() for part in names.split(",") if part.strip()]
    return list(names) if isinstance(names, Iterable) else [names]


def _check_images(train: Any, control: Any, canaries: Any) -> None:
    if canaries is None and train is None:
        raise InputError(
            "An audit needs training images: train (--train), or canaries (--canaries) that the model was trained with."
        )
    if canaries is not None and not (train is None and control is None):
        raise InputError("Canaries are training and control images in one: leave train and control out.")


def _check_numbers(settings: Mapping[str, Any]) -> None:
    noise_std, chunk, seconds = settings["noise_std"], settings["chunk"], settings["max_seconds"]
    if not is_number(noise_std) or not 0 <= noise_std < math.inf:
        raise InputError(f"The noise's standard deviation must be zero or more, got {noise_std!r}.")
    for name in ("attractors", "samples"):
        if not is_whole(settings[name]):
            raise InputError(f"{name} is a number of images, zero or more; got {settings[name]!r}.")
    check_seed(settings["seed"])
    if chunk is not None and not is_whole(chunk, 1):
        raise InputError(f"chunk is a number of images, 1 or more; got {chunk!r}.")
    if seconds is not None and not (is_number(seconds) and seconds > 0):
        raise InputError(f"max_seconds is a number of seconds, more than 0; got {seconds!r}.")
