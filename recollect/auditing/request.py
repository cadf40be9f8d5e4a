"""What was asked of an audit, read and checked before any work: sets, masks, methods, and settings to search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.auditing.tuning import GAMMAS, START_NAMED, STARTS
from recollect.degradation import (
    FILLS,
    SIX,
    Degradation,
    Erasure,
    Filled,
    Start,
    all_erased,
    degradation,
    fill_erased,
    half_kept,
)
from recollect.errors import InputError, is_number
from recollect.images import Images
from recollect.methods import DDNM, Biharmonic, Blind, Iterate, KnownMask, Refined, ZeroRule
from recollect.networks import FullyConnected, UNet
from recollect.sources import load

METHODS = ("blind", "refined", "iterate", "known")
NAMED = (*METHODS, "known-400", "zero-rule", "ddnm", "biharmonic")
_TUNED = ("blind", "refined", "known", "known-400", "zero-rule")  # methods that gamma matters to


@dataclass(frozen=True, eq=False)
class Place:
    """One set of images under one mask: what every method is tried on."""

    set: str
    mask: str
    images: Images
    truth: Degradation

    @property
    def black(self) -> bool:
        """Whether erased pixels are zero, so that the zeros of an image may give the mask away."""
        return isinstance(self.truth, Erasure) and not isinstance(self.truth, Filled)


@dataclass(frozen=True)
class Grid:
    """The blind method's settings: one of each where they are given or the paper's, several where to be searched."""

    gammas: tuple[float, ...]
    starts: tuple[Start, ...]

    @property
    def settled(self) -> Blind | None:
        return Blind(self.gammas[0], start=self.starts[0]) if len(self.gammas) == len(self.starts) == 1 else None


def read_sets(train: Any, control: Any) -> dict[str, Images]:
    """The images by the name of their set; control images must be alike in size."""
    given = {"train": train} if control is None else {"train": train, "control": control}
    sets = {name: _images(what, name) for name, what in given.items()}
    if len({s.shape for s in sets.values()}) > 1:
        sizes = " and ".join("x".join(map(str, s.shape)) for s in sets.values())
        raise InputError(f"Train and control images differ in size ({sizes}); control images must be alike.")
    return sets


def read_masks(masks: Any) -> dict[str, Any]:
    """What was asked for, by name; arrays in a list are numbered, "all" stands for the six."""
    if isinstance(masks, Mapping):
        named = {str(name): what for name, what in masks.items()}
    else:
        if isinstance(masks, str):
            masks = [part.strip() for part in masks.split(",")]
        items: Iterable[Any] = masks if isinstance(masks, (list, tuple)) else [masks]
        spread = [m for item in items for m in (SIX if isinstance(item, str) and item == "all" else [item])]
        named = {str(m) if isinstance(m, (str, Path)) else f"mask-{i}": m for i, m in enumerate(spread, 1)}
    if not named:
        raise InputError("At least one mask is needed, for example masks='all'.")
    return named


def read_fills(fill: Any) -> list[str]:
    """What erased pixels hold, one kind after another: names with commas between, or a sequence of them."""
    kinds = list(dict.fromkeys(str(kind) for kind in _split(fill)))
    if strange := [kind for kind in kinds if kind not in FILLS] or (not kinds and [fill]):
        raise InputError(f"There is no fill {strange[0]!r}; choose from {', '.join(FILLS)}.")
    return kinds


def read_places(
    sets: Mapping[str, Images], masks: Mapping[str, Any], seed: int, fills: Sequence[str] = ("zero",)
) -> list[Place]:
    """Every set under every mask with every fill; what does not fit is refused here, before hours of work."""
    places = []
    for set_name, images in sets.items():
        for name, what in masks.items():
            truth = degradation(what, images.shape, count=len(images), seed=seed)
            try:
                truth.expand(images[:1].pixels.expand(len(images), -1, -1, -1))
            except InputError as error:
                raise InputError(f"Mask {name!r} does not fit the {set_name} images: {error}") from None
            if not isinstance(truth, Erasure):
                places.append(Place(set_name, name, images, truth))
                continue
            _check_erases_some(name, truth)
            for fill in fills:
                label = name if fill == "zero" else f"{name}+{fill}"
                places.append(Place(set_name, label, images, fill_erased(truth, images, fill, seed)))
    if any(fill != "zero" for fill in fills) and not any(isinstance(place.truth, Erasure) for place in places):
        raise InputError(
            f"A fill is what erased pixels hold, and no pixel is erased by {', '.join(masks)}: leave it out."
        )
    return places


def _check_erases_some(name: str, truth: Erasure) -> None:
    if bool(truth.keep.all()):
        raise InputError(f"Mask {name!r} erases nothing, so there is nothing to recover.")
    if not bool(truth.keep.any()):
        raise InputError(f"Mask {name!r} erases everything, so there is nothing to recover an image from.")


def method_for(method: Any, truth: Degradation) -> Any:
    """The method as it starts in the truth's family: that an image is blurred and not erased is plain to see."""
    if isinstance(truth, Erasure) or not hasattr(method, "start"):
        return method
    return replace(method, start=type(truth).first_guess)


def read_grid(
    f: Any, methods: Mapping[str, Any], gamma: float | str | None, start: str | None, noise_std: float
) -> Grid:
    """Which gammas and starts to choose from: what is given, else the paper's for its networks, else a search."""
    if gamma not in (None, "auto") and not is_number(gamma):
        raise InputError(f"gamma is a number or 'auto', not {gamma!r}.")
    if is_number(gamma) and not 0 < float(gamma) < math.inf:  # type: ignore[arg-type]
        raise InputError(f"gamma is a positive number, got {gamma}.")
    if start not in (None, "auto", *START_NAMED):
        raise InputError(f"There is no start mask {start!r}; choose {', '.join(START_NAMED)} or auto.")
    paper = papers_settings(f, noise_std)
    if paper is None and not any(m in _TUNED for m in methods.values() if isinstance(m, str)):
        paper = Blind()  # nothing here depends on it
    gammas = GAMMAS if paper is None else (paper.gamma,)
    starts: tuple[Start, ...] = STARTS if paper is None else (paper.start,)
    if gamma is not None:
        gammas = GAMMAS if isinstance(gamma, str) else (float(gamma),)
    if start is not None:
        starts = STARTS if start == "auto" else (START_NAMED[start],)
    return Grid(gammas, starts)


def papers_settings(f: Any, noise_std: float = 0.0) -> Blind | None:
    """What the paper used for its own networks; None for any other."""
    if isinstance(f, UNet):
        return papers_blind(None, f.settings["activation"], noise_std)
    if isinstance(f, FullyConnected):
        return papers_blind(f.settings["layers"], f.settings["activation"], noise_std)
    return None


def papers_blind(layers: int | None, activation: str, noise_std: float = 0.0) -> Blind:
    """The paper's gamma and first mask for a fully connected network of so many layers, or a U-Net (None)."""
    if layers is None:
        return Blind(gamma=1.0, start=all_erased)
    careful = layers > 10 or activation == "prelu" or noise_std > 0
    return Blind(gamma=0.1 if careful else 0.5, start=half_kept)


def read_methods(methods: Any, *, black: bool = True) -> dict[str, Any]:
    """Methods by name: an object, or the name of one that settings are still to be chosen for.

    Beside some stands the baseline that a sceptic asks for: beside blind the zero rule, where erased pixels are
    `black`, and beside a diffusion prior the inpainting that knows nothing of images.
    """
    pairs = list(methods.items()) if isinstance(methods, Mapping) else [(None, m) for m in _split(methods)]
    there = [what for name, m in pairs for what in (name, m if isinstance(m, str) else getattr(m, "name", None))]
    chosen: dict[str, Any] = {}
    for name, method in pairs:
        _check_method(name, method)
        name = str(name or (method if isinstance(method, str) else method.name))
        if name in chosen:
            raise InputError(f"There are two methods called {name!r}; leave one out, or give a dict that names them.")
        chosen[name] = method
        baseline = "zero-rule" if method == "blind" and black else "biharmonic" if _is_ddnm(method) else None
        if baseline and baseline not in there:
            chosen[baseline] = baseline
    if not chosen:
        raise InputError("At least one method is needed, for example blind.")
    return chosen


def settle_methods(methods: Mapping[str, Any], blind: Blind, noise_std: float) -> dict[str, Any]:
    """The methods that were named, with these settings; without noise, pixels that are known are put back."""
    paste = noise_std == 0
    made = {
        "blind": blind,
        "refined": Refined(blind.gamma, blind.steps, blind.limit, blind.start, paste=paste),
        "iterate": Iterate(),
        "known": KnownMask(gamma=blind.gamma, paste=paste),
        "known-400": KnownMask(gamma=blind.gamma, steps=400, paste=paste),
        "zero-rule": ZeroRule(gamma=blind.gamma, paste=paste),
        "biharmonic": Biharmonic(),
    }
    return {name: made[method] if isinstance(method, str) else method for name, method in methods.items()}


def leave_out(places: Sequence[Place], ids: Sequence[str]) -> list[Place]:
    """The same places without these training images."""
    spent = set(ids)
    kept: dict[str, tuple[np.ndarray, Images]] = {}
    for place in places:
        if place.set not in kept:
            stay = np.array([place.set != "train" or name not in spent for name in place.images.ids])
            kept[place.set] = stay, place.images[stay]
    return [
        replace(p, images=kept[p.set][1], truth=p.truth[kept[p.set][0]] if len(p.truth) > 1 else p.truth)
        for p in places
    ]


def _is_ddnm(method: Any) -> bool:
    return isinstance(method, DDNM) or (isinstance(method, str) and method == "ddnm")


def _check_method(name: Any, method: Any) -> None:
    if isinstance(method, str):
        if method not in NAMED:
            raise InputError(f"There is no method {method!r}; choose from {', '.join(NAMED)}.")
    elif isinstance(method, type):
        raise InputError(f"A method is an object: write {method.__name__}() in place of {method.__name__}.")
    elif not callable(method) or not hasattr(method, "knows_truth") or not (name or hasattr(method, "name")):
        raise InputError(
            f"A method is one of {', '.join(NAMED)}, or an object like recollect.Blind() with a name and knows_truth; "
            f"got a {type(method).__name__}."
        )


def _split(methods: Any) -> Sequence[Any]:
    """Names with commas between them, or a sequence as it is."""
    if isinstance(methods, str):
        return [part.strip() for part in methods.split(",") if part.strip()]
    return list(methods) if isinstance(methods, Iterable) else [methods]


def _images(what: Any, name: str) -> Images:
    return load(what) if isinstance(what, (str, Path)) else Images.of(what, name=name)
