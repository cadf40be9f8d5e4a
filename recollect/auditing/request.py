"""What an audit is asked to do: one frozen request, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect import degradation
from recollect.auditing.given_settings import START_NAMES, check_given, read_fills, read_gate, split_names
from recollect.auditing.method_setup import unbuilt
from recollect.auditing.plan import Plan
from recollect.auditing.thresholds import APPROXIMATELY
from recollect.auditing.verdict import Gate
from recollect.errors import InputError
from recollect.files.names import printable
from recollect.mask_names import PAPER_MASK_NAMES
from recollect.methods import METHODS

STARTS: Mapping[str, degradation.Start] = {name: getattr(degradation, name) for name in START_NAMES}


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """Everything that an audit is asked to do.

    Args:
        model: A callable from images to images of the same shape, or a file or name that `open_model` opens.
        train: Training images: arrays, tensors, datasets, `Images`, a path or a source.
        control: Unseen images, in the same forms.
        canaries: In place of both: a folder that `recollect canaries make` wrote, or a `CanarySet`.
        masks: "all", names, files, arrays or degradations; a dict names them.
        fill: What erased pixels hold: zero, constant, noise, images, or several of these.
        methods: Names or method objects; a dict names them. None takes the methods that run by default.
        gamma: A value, "auto" to search, or None: the paper's for its own networks, a search for other models.
        start: The first mask: "half_kept", "all_erased", "auto" or None, as for gamma.
        noise_std: Standard deviation of the noise that is added to damaged images.
        attractors: How many training images are examined for being attractors.
        samples: How many images the model also generates, to count the training images among them.
        noise_level: Of a diffusion model that is audited: a value, "annealed", or "auto" or None to search.
        prior: Diffusion model for methods that need one: a folder or a hub name. None takes the bundled one.
        out: Folder for results. Finished cells are written there at once, and the same request resumes there.
        pictures: False writes no image to any file.
        chunk: Images per batch; None chooses by memory.
        seed: Seed of random masks, noise and first guesses.
        title: Heading of the report. Defaults to the model's name.
        command: The command line that asked for the audit, for the record.
        model_options: Options of `open_model`, for a model that is given by file or name.
        fail_above: The largest share of training images that may be recovered; None gives no verdict.
        threshold: When an image counts as recovered for the verdict: "exact", "approximate" or a mean square error.
        max_seconds: End after this time with `OutOfTime`; finished cells are kept in `out`. None sets no limit.
        plan: The plan that the settings were taken from, for the record.

    Examples:
        >>> from recollect.auditing import AuditRequest
        >>> request = AuditRequest(lambda x: x, "photos?count=4", masks="half,dust")
        >>> list(request.named_masks)
        ['half', 'dust']
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
        check_given(vars(self))
        if not isinstance(self.pictures, bool):
            raise InputError(f"pictures is True or False, got {self.pictures!r}.")
        if not isinstance(self.out, str | Path | None):
            raise InputError(f"out is a folder for results, got {self.out!r}.")
        _ = self.named_masks  # refuses an empty list
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
        return read_gate(self.fail_above, self.threshold)

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


def _mask_list(masks: Any) -> list[Any]:
    if isinstance(masks, str):
        masks = [part.strip() for part in masks.split(",")]
    given = masks if isinstance(masks, (list, tuple)) else [masks]
    listed: list[Any] = []
    for mask in given:
        if isinstance(mask, str) and mask == "all":
            listed += PAPER_MASK_NAMES
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
