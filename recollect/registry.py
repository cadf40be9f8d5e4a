"""Collect everything of one kind: the files of a package, and what other packages register as entry points."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from recollect.errors import InputError

Kind = TypeVar("Kind")


class Registry(Mapping[str, Kind], Generic[Kind]):
    """The members of one kind by name, found when first asked for.

    A member is a subclass of `kind` with a `name` of its own, or an instance of `kind`. Every file of `package` is
    searched, so a new member is one new file. Another package adds its members through the entry point group that is
    called like the package, for example `recollect.methods`.
    """

    def __init__(self, noun: str, package: str, kind: type[Any]) -> None:
        self._noun, self._package, self._kind = noun, package, kind

    def __getitem__(self, name: str) -> Kind:
        if name not in self._members:
            raise not_among(self._noun, name, self)
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @cached_property
    def _members(self) -> dict[str, Kind]:
        members = [*self._built_in(), *self._registered_elsewhere()]
        by_name: dict[str, Kind] = {}
        for member in sorted(members, key=_order):
            if member.name in by_name:
                raise InputError(f"Two packages register a {self._noun} called {member.name!r}; uninstall one of them.")
            by_name[member.name] = member
        return by_name

    def _built_in(self) -> Iterator[Any]:
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            yield from self._members_of(importlib.import_module(f"{self._package}.{module.name}"))

    def _members_of(self, module: ModuleType) -> Iterator[Any]:
        for value in vars(module).values():
            defined_here = getattr(value, "__module__", None) == module.__name__ or not isinstance(value, type)
            if defined_here and self._is_member(value):
                yield value

    def _is_member(self, value: object) -> bool:
        if isinstance(value, type):
            return issubclass(value, self._kind) and bool(vars(value).get("name"))
        return isinstance(value, self._kind)

    def _registered_elsewhere(self) -> Iterator[Any]:
        for entry in entry_points(group=self._package):
            yield self._loaded(entry)

    def _loaded(self, entry: EntryPoint) -> Any:
        origin = f"The {self._noun} {entry.name!r} of the package {_distribution(entry)}"
        try:
            member = entry.load()
        except Exception as error:
            raise InputError(f"{origin} cannot be loaded: {type(error).__name__}: {error}") from error
        if not self._is_member(member):
            raise InputError(f"{origin} is not a {self._kind.__module__}.{self._kind.__qualname__} with a name.")
        return member


def not_among(noun: str, name: str, names: Iterable[str]) -> InputError:
    """Say that there is no such member."""
    return InputError(f"There is no {noun} {name!r}; choose from {', '.join(names)}.")


def _order(member: Any) -> tuple[int, str]:
    """Members that say so come first: help and tables list the most used ones first."""
    return getattr(member, "order", 100), member.name


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
