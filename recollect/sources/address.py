"""The source address, which names a set of images: SOURCE[:PATH][?parameter=value&...]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.sources.base import Source

COMMON = ("count", "per-class", "seed", "size", "part")
PARTS = ("train", "control")
FOLDER = "folder"  # the source of a path that no other source claims
_PARAMETERS = re.compile(r"\?((?:[\w-]+=[^&?]*)(?:&[\w-]+=[^&?]*)*)$")


@dataclass(frozen=True)
class Address:
    """A source address, parsed and checked."""

    source: str
    path: str = ""
    count: int | None = None
    per_class: int | None = None
    seed: int = 42
    size: int | None = None
    part: str = "train"
    parameters: Mapping[str, str] = field(default_factory=dict)  # those of this source alone

    @property
    def drawn(self) -> bool:
        """Return whether a number of images is asked for, rather than all."""
        return self.count is not None or self.per_class is not None

    def __str__(self) -> str:
        """Write the address in full: defaults are written out, so that they cannot change later."""
        given: dict[str, object] = {"count": self.count, "per-class": self.per_class, "size": self.size}
        if self.drawn:
            given["seed"] = self.seed
        if self.drawn or self.part != "train":
            given["part"] = self.part
        given |= self.parameters
        text = f"{self.source}:{self.path}" if self.path else self.source
        pairs = [f"{name}={value}" for name, value in given.items() if value is not None]
        return f"{text}?{'&'.join(pairs)}" if pairs else text


def parse(text: str, sources: Mapping[str, Source]) -> Address:
    """Parse a source address; refuse an unknown or incomplete one with a list of what exists."""
    if not isinstance(text, str):
        raise InputError(f"Expected a source address such as 'photos', got a {type(text).__name__}.")
    parameters = _PARAMETERS.search(text)
    location = text[: parameters.start()] if parameters else text
    name, path = _source_and_path(location, sources)
    source = sources[name]
    if path and not source.path:
        raise InputError(f"{name} takes no path, got {path!r}; a folder of your own is folder:{path}.")
    if source.path and not path and not source.archives:
        raise InputError(f"{name} needs a path: {name}:PATH, where PATH is {source.path}.")
    pairs = _pairs(text, parameters.group(1).split("&")) if parameters else {}
    _check_names(text, pairs, source)
    return _address(source, path, _with_defaults(pairs, source))


def _source_and_path(location: str, sources: Mapping[str, Source]) -> tuple[str, str]:
    name, colon, path = location.partition(":")
    if name in sources:
        if colon and not path:
            raise InputError(f"{location!r} has no path after its colon; write {name}:PATH.")
        return name, path
    for source in sources.values():
        if source.suffixes and location.lower().endswith(source.suffixes):
            return source.name, location
    if _is_folder(location):
        return FOLDER, location
    raise _no_such_source(location, sources)


def _is_folder(location: str) -> bool:
    return "?" not in location and not _names_source(location) and not set(location).isdisjoint("/\\.~")


def _names_source(location: str) -> bool:
    name, colon, _ = location.partition(":")
    return bool(colon) and len(name) > 1  # one letter and a colon is a Windows drive


def _no_such_source(location: str, sources: Mapping[str, Source]) -> InputError:
    if "?" in location:
        return InputError(
            f"After the ? of {location!r} come parameter=value pairs joined by &, such as count=40&size=32."
        )
    if _names_source(location):
        name = location.partition(":")[0]
        return InputError(f"There is no source {name!r}. There are: {', '.join(sources)}.")
    suffixes = ", ".join(suffix for source in sources.values() for suffix in source.suffixes)
    return InputError(
        f"There is no source {location!r}. There are: {', '.join(sources)}; "
        f"or give a path: a folder of images (./name), or a file that ends in {suffixes}."
    )


def _pairs(text: str, parts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name in pairs:
            raise InputError(f"{name} is given twice in {text!r}; give it once.")
        pairs[name] = value
    return pairs


def _check_names(text: str, pairs: Mapping[str, str], source: Source) -> None:
    known = (*COMMON, *source.parameters)
    for name in pairs:
        if name not in known:
            raise InputError(f"{source.name} has no parameter {name!r} (in {text!r}). It has: {', '.join(known)}.")
    if "count" in pairs and "per-class" in pairs:
        raise InputError(f"{text!r} gives both count and per-class; give the one that you mean.")


def _with_defaults(pairs: Mapping[str, str], source: Source) -> dict[str, str]:
    defaults = dict(source.defaults)
    if "per-class" in pairs:
        defaults.pop("count", None)
    return {**defaults, **pairs}


def _address(source: Source, path: str, pairs: Mapping[str, str]) -> Address:
    part = pairs.get("part", "train")
    if part not in PARTS:
        raise InputError(f"part={part} is unknown; it is {' or '.join(PARTS)}.")
    seed = _whole_number(pairs, "seed", at_least=0)
    return Address(
        source=source.name,
        path=path,
        count=_whole_number(pairs, "count", at_least=1),
        per_class=_whole_number(pairs, "per-class", at_least=1),
        seed=Address.seed if seed is None else seed,
        size=_whole_number(pairs, "size", at_least=1),
        part=part,
        parameters={name: value for name, value in pairs.items() if name in source.parameters},
    )


def _whole_number(pairs: Mapping[str, str], name: str, *, at_least: int) -> int | None:
    """Read a parameter; None where it is left out."""
    if name not in pairs:
        return None
    text = pairs[name]
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < at_least:
        raise InputError(f"{name}={text} is not a whole number of at least {at_least}.")
    return int(text)
