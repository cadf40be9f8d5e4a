"""The source address, which names a set of images: SOURCE[:PATH][?parameter=value&...]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.counting import with_article
from recollect.errors import InputError
from recollect.user_code import advice_for_script

if TYPE_CHECKING:
    from recollect.sources.base import Source

COMMON = ("count", "per-class", "seed", "size", "resize", "grey", "part")
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
    resize: tuple[int, int] | None = None  # width and height
    grey: bool = False
    part: str = "train"
    parameters: Mapping[str, str] = field(default_factory=dict)  # those of this source alone

    @property
    def drawn(self) -> bool:
        """Return whether a number of images is asked for, rather than all."""
        return self.count is not None or self.per_class is not None

    def __str__(self) -> str:
        """Write the address in full: defaults are written out, so that they cannot change later."""
        given: dict[str, object] = {"count": self.count, "per-class": self.per_class, "size": self.size}
        given["resize"] = "x".join(map(str, self.resize)) if self.resize else None
        given["grey"] = 1 if self.grey else None
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
        raise InputError(f"Expected a source address such as 'photos', got {with_article(type(text).__name__)}.")
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
    if name in ("http", "https") and path.startswith("//"):
        raise InputError(f"No source opens an address on the web; download {location} and give its path.")
    if name in sources:
        if colon and not path:
            raise InputError(f"{location!r} has no path after its colon; write {name}:PATH.")
        return name, path
    for source in sources.values():
        if location.lower().endswith(source.suffixes) or source.claims(location):
            return source.name, location
    if _is_folder(location):
        return FOLDER, location
    raise _no_such_source(location, sources)


def _is_folder(location: str) -> bool:
    with suppress(OSError):  # a name that is too long is no folder
        if location and Path(location).is_dir():
            return True
    return "?" not in location and not _names_source(location) and not set(location).isdisjoint("/\\.~")


def _names_source(location: str) -> bool:
    name, colon, _ = location.partition(":")
    return bool(colon) and len(name) > 1  # one letter and a colon is a Windows drive


def _no_such_source(location: str, sources: Mapping[str, Source]) -> InputError:
    if advice := advice_for_script(location):
        return InputError(advice)
    if "?" in location:
        return InputError(
            f"After the ? of {location!r} come parameter=value pairs joined by &, such as count=40&size=32."
        )
    if _names_source(location):
        name = location.partition(":")[0]
        return InputError(
            f"There is no source {name!r}. There are: {', '.join(sources)}; or name code as package.module:name."
        )
    suffixes = ", ".join(suffix for source in sources.values() for suffix in source.suffixes)
    return InputError(
        f"There is no source {location!r}. There are: {', '.join(sources)}; "
        f"or give a path: a folder of images, or a file that ends in {suffixes}."
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
    if "resize" in pairs and "size" in pairs:
        raise InputError(
            f"{text!r} gives both size (cuts a square) and resize (keeps all); give the one that you mean."
        )


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
    if seed is not None and "count" not in pairs and "per-class" not in pairs:
        raise InputError(f"seed={seed} says which images are drawn, and none are; add count=N, or leave seed out.")
    return Address(
        source=source.name,
        path=path,
        count=_whole_number(pairs, "count", at_least=1),
        per_class=_whole_number(pairs, "per-class", at_least=1),
        seed=Address.seed if seed is None else seed,
        size=_whole_number(pairs, "size", at_least=1),
        resize=_width_and_height(pairs),
        grey=_switch(pairs, "grey"),
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


def _width_and_height(pairs: Mapping[str, str]) -> tuple[int, int] | None:
    """Read resize=64 or resize=64x48; None where it is left out."""
    if "resize" not in pairs:
        return None
    sides = pairs["resize"].split("x")
    if len(sides) > 2 or not all(re.fullmatch(r"[1-9][0-9]{0,4}", side) for side in sides):
        raise InputError(f"resize={pairs['resize']} is neither a side in pixels (64) nor a width and height (64x48).")
    return int(sides[0]), int(sides[-1])


def _switch(pairs: Mapping[str, str], name: str) -> bool:
    """Read 0 or 1; 0 where it is left out."""
    if pairs.get(name, "0") not in ("0", "1"):
        raise InputError(f"{name}={pairs[name]} is unknown; it is 1, or left out.")
    return pairs.get(name) == "1"
