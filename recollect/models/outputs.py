"""Which part of what a model returns is the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor

from recollect.counting import counted, with_article
from recollect.devices.model_call import call_of, leave_unchecked
from recollect.errors import InputError
from recollect.models.wording import SIGMOID, option, size

MOST_LISTED = 12
NO_IMAGE = 4  # the rank of a part that cannot hold the images


def call_model(model: Callable[[Tensor], Any], images: Tensor) -> Tensor:
    """Call a model on a copy of images, and return the image of what it returns."""
    inner = getattr(model, "inner", model)  # behind every adaptation that is tried it needs the same
    return call_of(inner)(lambda part: pick_output(model(part), None, part), images.clone(), leave_unchecked)


def pick_output(returned: Any, output: str | int | None, given: Tensor) -> Tensor:
    """Return the tensor that `output` names (0, sample, 0.sample), or all of it; a sigmoid of it for logits.sigmoid."""
    if output is None:
        return _whole(returned, given)
    part = returned
    for step in str(output).split("."):
        part = _step(part, step, output, given)
    if not isinstance(part, Tensor):
        raise InputError(f"{option('output', output)} is {_contents(part, given, str(output))}")
    return part


def _whole(returned: Any, given: Tensor) -> Tensor:
    if isinstance(returned, Tensor):
        return returned
    raise InputError(f"The model returned {_contents(returned, given)}")


def _step(whole: Any, step: str, output: str | int, given: Tensor) -> Any:
    """Go one part further in: to a position, a key, or an attribute that holds data."""
    parts = dict(_parts(whole))
    if step.lstrip("-").isdigit() and isinstance(whole, tuple | list) and -len(whole) <= int(step) < len(whole):
        return whole[int(step)]
    if step in parts:
        return parts[step]
    if isinstance(whole, Tensor) and step == SIGMOID:
        return whole.sigmoid()
    if isinstance(whole, Tensor):
        raise InputError(
            f"The model returned a tensor, which has no part {step!r}; leave {option('output', output)} out."
        )
    raise InputError(f"There is no {option('output', output)}: the model returned {_contents(whole, given)}")


def _contents(returned: Any, given: Tensor, inside: str = "") -> str:
    """Describe what the model returned, with the option that picks the likeliest part."""
    parts = list(_parts(returned))
    unlikeliness = {name: _unlikeliness(part, given) for name, part in parts}
    if min(unlikeliness.values(), default=NO_IMAGE) == NO_IMAGE:
        return (
            f"{with_article(type(returned).__name__)}, in which no tensor was found that could hold the images; "
            "wrap the model in a function that returns the image."
        )
    listed = ", ".join(f"{name}: {_brief(part)}" for name, part in parts[:MOST_LISTED])
    likeliest = min(unlikeliness, key=unlikeliness.__getitem__)
    choice = option("output", f"{inside}.{likeliest}") if inside else option("output", _as_written(likeliest))
    hint = "which has the shape of the images" if unlikeliness[likeliest] == 0 else "for example"
    whole = f"{with_article(type(returned).__name__)} of {counted(len(parts), 'part')} ({listed})"
    return f"{whole}; say which is the image with {choice}, {hint}."


def _unlikeliness(part: Any, given: Tensor) -> int:
    """Rank a part: as large as the images, holding other parts, another tensor of as many items, none of these."""
    if not isinstance(part, Tensor):
        return 2 if any(True for _ in _parts(part)) else NO_IMAGE
    if part.shape == given.shape:
        return 0
    if part.ndim == 0 or len(part) != len(given):
        return NO_IMAGE
    return 1 if part.numel() == given.numel() else 3


def _as_written(name: str) -> str | int:
    return int(name) if name.isdigit() else name


def _parts(returned: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and parts of a tuple, a dict, or an object's own fields; nothing is called to find them."""
    if isinstance(returned, tuple) and hasattr(returned, "_fields"):
        yield from zip(returned._fields, returned, strict=True)
    elif isinstance(returned, tuple | list):
        yield from ((str(i), part) for i, part in enumerate(returned))
    elif isinstance(returned, Mapping):
        yield from ((str(name), part) for name, part in returned.items())
    elif not isinstance(returned, Tensor):
        yield from _fields(returned)


def _fields(returned: Any) -> Iterator[tuple[str, Any]]:
    """Yield an object's own public fields, also those in slots."""
    slots = [name for kind in type(returned).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = dict(getattr(returned, "__dict__", {}))
    fields |= {name: getattr(returned, name, None) for name in slots if not name.startswith("_")}
    yield from ((name, part) for name, part in fields.items() if not name.startswith("_"))


def _brief(part: Any) -> str:
    return f"tensor {size(part.shape)}" if isinstance(part, Tensor) else type(part).__name__
