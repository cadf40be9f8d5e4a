"""The one spelling of a set of images: SOURCE[:PATH][?parameter=value&...]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from recollect.errors import InputError

COMMON = ("count", "per-class", "seed", "size", "part")
PARTS = ("train", "control")
ARRAY_SUFFIXES = (".npy", ".npz", ".safetensors")
_PARAMETERS = re.compile(r"\?((?:[\w-]+=[^&?]*)(?:&[\w-]+=[^&?]*)*)$")


class Grammar(Protocol):
    """What the spelling has to know of a source."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def cached(self) -> bool: ...
    @property
    def own(self) -> tuple[str, ...]: ...
    @property
    def defaults(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Request:
    """A spelling, taken apart and checked."""

    source: str
    path: str = ""
    count: int | None = None
    per_class: int | None = None
    seed: int = 42
    size: int | None = None
    part: str = "train"
    own: Mapping[str, str] = field(default_factory=dict)  # parameters of this source alone

    @property
    def drawn(self) -> bool:
        """Whether some of the images are asked for, rather than all."""
        return self.count is not None or self.per_class is not None

    def __str__(self) -> str:
        """The spelling in full: what was left to a default is written out, so that it cannot change later."""
        given: dict[str, object] = {"count": self.count, "per-class": self.per_class, "size": self.size}
        given["seed"] = self.seed if self.drawn else None
        given["part"] = self.part if self.drawn or self.part != "train" else None
        given |= self.own
        parameters = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
        return self.source + (f":{self.path}" if self.path else "") + (f"?{parameters}" if parameters else "")


def parse(spec: str, sources: Mapping[str, Grammar]) -> Request:
    """Take a spelling apart; what is unknown or missing is refused with a list of what exists."""
    if not isinstance(spec, str):
        raise InputError(f"Expected a spelling such as 'photos', got a {type(spec).__name__}.")
    found = _PARAMETERS.search(spec)
    place = spec[: found.start()] if found else spec
    name, path = _source_and_path(place, sources)
    source = sources[name]
    if path and not source.path:
        raise InputError(f"{name} takes no path, got {path!r}; a folder of your own is folder:{path}.")
    if source.path and not path and not source.cached:
        raise InputError(f"{name} needs a path: {name}:PATH, where PATH is {source.path}.")
    return _request(spec, name, path, _pairs(spec, found.group(1) if found else ""), source)


def _source_and_path(place: str, sources: Mapping[str, Grammar]) -> tuple[str, str]:
    name, colon, path = place.partition(":")
    if name in sources:
        if colon and not path:
            raise InputError(f"{place!r} ends where its path should stand; write {name}:PATH.")
        return name, path
    if place.lower().endswith(ARRAY_SUFFIXES):
        return "array", place
    if "?" in place:
        raise InputError(f"After the ? of {place!r} come parameter=value pairs joined by &, such as count=40&size=32.")
    if len(name) > 1 and colon:  # one letter and a colon is a Windows drive
        raise InputError(f"There is no source {name!r}. There are: {', '.join(sources)}.")
    if any(mark in place for mark in "/\\.~"):
        return "folder", place
    raise InputError(
        f"There is no source {place!r}. There are: {', '.join(sources)}; "
        "or give a path: a folder of images (./name), or a .npy, .npz or .safetensors file."
    )


def _pairs(spec: str, text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in text.split("&") if text else ():
        name, _, value = pair.partition("=")
        if name in pairs:
            raise InputError(f"{name} is given twice in {spec!r}; give it once.")
        pairs[name] = value
    return pairs


def _request(spec: str, name: str, path: str, pairs: dict[str, str], source: Grammar) -> Request:
    known = (*COMMON, *source.own)
    for unknown in (p for p in pairs if p not in known):
        raise InputError(f"{name} has no parameter {unknown!r} (in {spec!r}). It has: {', '.join(known)}.")
    if "count" in pairs and "per-class" in pairs:
        raise InputError(f"{spec!r} gives both count and per-class; give the one that you mean.")
    defaults = dict(source.defaults)
    if "per-class" in pairs:
        defaults.pop("count", None)
    pairs = defaults | pairs
    part = pairs.get("part", "train")
    if part not in PARTS:
        raise InputError(f"part={part} is unknown; it is {' or '.join(PARTS)}.")
    seed = _whole("seed", pairs.get("seed", "42"), at_least=0)
    return Request(
        source=name,
        path=path,
        count=_whole("count", pairs["count"], at_least=1) if "count" in pairs else None,
        per_class=_whole("per-class", pairs["per-class"], at_least=1) if "per-class" in pairs else None,
        seed=seed,
        size=_whole("size", pairs["size"], at_least=1) if "size" in pairs else None,
        part=part,
        own={key: value for key, value in pairs.items() if key in source.own},
    )


def _whole(name: str, text: str, *, at_least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < at_least:
        raise InputError(f"{name}={text} is not a whole number of at least {at_least}.")
    return int(text)
