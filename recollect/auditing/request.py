"""What an audit is asked to do: one frozen request, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.auditing.method_setup import unbuilt
from recollect.auditing.plan import Plan
from recollect.auditing.thresholds import APPROXIMATELY, read_threshold
from recollect.auditing.verdict import Gate
from recollect.degradation import FILLS, PAPER_MASKS, Start, all_erased, half_kept
from recollect.errors import InputError, check_seed, is_number, is_whole
from recollect.methods import METHODS
from recollect.names import printable

STARTS: Mapping[str, Start] = {start.__name__: start for start in (half_kept, all_erased)}
AUTO = "auto"  # search for the setting
ANNEALED = "annealed"  # in place of a diffusion model's noise level: it falls along the steps of ADMM


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """Everything that an audit is asked to do.

    model: a callable from images to images of the same shape, or a file or name that `open_model` opens.
    train, control: training images and unseen images. Arrays, tensors, datasets, `Images`, a path or a source.
    canaries: in place of both: a folder that `recollect canaries make` wrote, or a `CanarySet`.
    masks: "all", names, files, arrays or degradations; a dict names them.
    fill: what erased pixels hold: zero, constant, noise, images, or several of these.
    methods: names or method objects; a dict names them. None takes the methods that say they run by default.
    gamma, start: a value, "auto" to search, or None: the paper's for its own networks, a search for other models.
    noise_std: standard deviation of the noise that is added to damaged images.
    attractors: how many training images are examined for being attractors.
    samples: how many images the model also generates, to count the training images among them.
    noise_level: of a diffusion model that is audited: a value, "annealed", or "auto" or None to search.
    prior: diffusion model for methods that need one: a folder or a hub name. None takes the bundled one.
    out: folder for results. Finished cells are written there at once, and the same request resumes there.
    pictures: False keeps every image out of the results: for those who must not store training data.
    chunk: images per batch; None chooses by memory.
    model_options: options of `open_model`, for a model that is given by file or name.
    fail_above: the largest share of training images that may be recovered; None gives no verdict.
    threshold: when an image counts as recovered for the verdict: "exact", "approximate" or a mean square error.
    plan: the plan that the settings were taken from, for the record.
    max_seconds: end after this time with `OutOfTime`; finished cells are kept in `out`. None sets no limit.
    """

    model: Any
    train: Any = None
    control: Any = None
    canaries: Any = None
    masks: Any = "all"
    fill: Any = "zero"
    methods: Any = None
    gamma: float | str | None = None
    start: str | None = None
    noise_std: float = 0.0
    attractors: int = 0
    samples: int = 0
    noise_level: float | str | None = None
    prior: Any = None
    out: str | Path | None = None
    pictures: bool = True
    chunk: int | None = None
    seed: int = 42
    title: str = ""
    command: str = ""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    fail_above: float | None = None
    threshold: float | str = APPROXIMATELY.name
    max_seconds: float | None = None
    plan: Plan | None = None

    def __post_init__(self) -> None:
        _check_images(self.train, self.control, self.canaries)
        _check_numbers(self.noise_std, self.seed, attractors=self.attractors, samples=self.samples)
        _check_positive("gamma", self.gamma, AUTO)
        _check_positive("noise_level", self.noise_level, AUTO, ANNEALED)
        if not isinstance(self.pictures, bool):
            raise InputError(f"pictures is True or False, got {self.pictures!r}.")
        if self.max_seconds is not None and not (is_number(self.max_seconds) and self.max_seconds > 0):
            raise InputError(f"max_seconds is a number of seconds, more than 0; got {self.max_seconds!r}.")
        if self.start not in (None, AUTO, *STARTS):
            raise InputError(f"There is no start mask {self.start!r}; choose {', '.join(STARTS)} or {AUTO}.")
        _ = self.named_masks, self.fills, self.gate  # reading them refuses what cannot be read
        if self.canaries is not None and "images" in self.fills:
            raise InputError("With canaries the fill is not images: pixels of other canaries would tell their coins.")
        _check_prior(self.prior, self.named_methods)

    @cached_property
    def named_masks(self) -> dict[str, Any]:
        """What damages the images, by name."""
        return read_masks(self.masks)

    @cached_property
    def fills(self) -> list[str]:
        """The names of what erased pixels hold."""
        return read_fills(self.fill)

    @cached_property
    def named_methods(self) -> dict[str, Any]:
        """Methods by name: an object as it was given, or a class that is still to be built with settings."""
        return read_methods(self.methods)

    @cached_property
    def gate(self) -> Gate | None:
        """The limit that the audit is held to, if there is one."""
        threshold = read_threshold(self.threshold)
        if self.fail_above is None:
            return None
        if not is_number(self.fail_above) or not 0 <= self.fail_above < 1:
            raise InputError(f"fail_above is a share of the training images, 0 to below 1; got {self.fail_above!r}.")
        return Gate(float(self.fail_above), threshold)

    @property
    def paste(self) -> bool:
        """Whether known pixels are put back into an estimate: right where there is no noise."""
        return self.noise_std == 0


def read_masks(masks: Any) -> dict[str, Any]:
    """Name each mask: by its own name, or by its number where it is an array."""
    if isinstance(masks, Mapping):
        named = {str(name): mask for name, mask in masks.items()}
    else:
        named = {_mask_name(number, mask): mask for number, mask in enumerate(_mask_list(masks), 1)}
    if not named:
        raise InputError("At least one mask is needed, for example masks='all'.")
    return named


def read_fills(fill: Any) -> list[str]:
    """Read the names of fills, each once."""
    kinds = list(dict.fromkeys(str(kind) for kind in split_names(fill)))
    unknown = [kind for kind in kinds if kind not in FILLS]
    if unknown or not kinds:
        raise InputError(f"There is no fill {(unknown or [fill])[0]!r}; choose from {', '.join(FILLS)}.")
    return kinds


def read_methods(methods: Any) -> dict[str, Any]:
    """Read methods by name: objects stay, a name becomes the class that is registered for it."""
    chosen: dict[str, Any] = {}
    for name, method in _method_pairs(methods):
        _check_method(name, method)
        if isinstance(method, str):
            name, method = name or method, METHODS[method]
        name = str(name or method.name)
        if name in chosen:
            raise InputError(f"There are two methods called {name!r}; leave one out, or give a dict that names them.")
        chosen[name] = method
    if not chosen:
        raise InputError("At least one method is needed, for example blind.")
    return chosen


def default_methods() -> list[str]:
    """List the methods that run unless others are asked for."""
    return [name for name, method in METHODS.items() if method.by_default]


def split_names(names: Any) -> list[Any]:
    """Split names at commas; a sequence stays as it is."""
    if isinstance(names, str):
        return [part.strip() for part in names.split(",") if part.strip()]
    return list(names) if isinstance(names, Iterable) else [names]


def _mask_list(masks: Any) -> list[Any]:
    if isinstance(masks, str):
        masks = [part.strip() for part in masks.split(",")]
    given = masks if isinstance(masks, (list, tuple)) else [masks]
    listed: list[Any] = []
    for mask in given:
        if isinstance(mask, str) and mask == "all":
            listed += PAPER_MASKS
        else:
            listed.append(mask)
    return listed


def _mask_name(number: int, mask: Any) -> str:
    return printable(str(mask)) if isinstance(mask, (str, Path)) else f"mask-{number}"


def _method_pairs(methods: Any) -> list[tuple[Any, Any]]:
    if methods is None:
        methods = default_methods()
    if isinstance(methods, Mapping):
        return list(methods.items())
    return [(None, method) for method in split_names(methods)]


def _check_method(name: Any, method: Any) -> None:
    if isinstance(method, str):
        _ = METHODS[method]  # refuses a name that is not registered
    elif isinstance(method, type):
        raise InputError(f"A method is an object: write {method.__name__}() in place of {method.__name__}.")
    elif not callable(method) or not hasattr(method, "knows_truth") or not (name or hasattr(method, "name")):
        raise InputError(
            f"A method is one of {', '.join(METHODS)}, or an object like recollect.Blind() with a name and "
            f"knows_truth; got a {type(method).__name__}."
        )


def _check_prior(prior: Any, methods: Mapping[str, Any]) -> None:
    if prior is None or any(unbuilt(method) and method.takes("prior") for method in methods.values()):
        return
    users = " or ".join(name for name, method in METHODS.items() if method.takes("prior"))
    raise InputError(f"A prior is for the method {users}; add {users} to the methods.")


def _check_images(train: Any, control: Any, canaries: Any) -> None:
    if canaries is None and train is None:
        raise InputError("An audit needs training images (train), or canaries that the model was trained with.")
    if canaries is not None and not (train is None and control is None):
        raise InputError("Canaries are training and control images in one: leave train and control out.")


def _check_numbers(noise_std: float, seed: int, **counts: int) -> None:
    if not is_number(noise_std) or not 0 <= noise_std < math.inf:
        raise InputError(f"The noise's standard deviation must be zero or more, got {noise_std!r}.")
    for name, count in counts.items():
        if not is_whole(count):
            raise InputError(f"{name} is a number of images, zero or more; got {count!r}.")
    check_seed(seed)


def _check_positive(name: str, value: float | str | None, *words: str) -> None:
    """Refuse what is neither a positive number nor one of these words."""
    if value is None or value in words:
        return
    if not is_number(value):
        raise InputError(f"{name} is a number or {' or '.join(map(repr, words))}, not {value!r}.")
    if not 0 < float(value) < math.inf:
        raise InputError(f"{name} is a positive number, got {value}.")
