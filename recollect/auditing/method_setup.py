"""The methods of an audit: baselines that come along, building them with settings, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeGuard

from recollect.degradation import Degradation, Erasure
from recollect.methods import METHODS, Method
from recollect.records import plain

TUNED = ("gamma", "start")  # settings that an audit may have to search for
STEPS_APART = ("restart_steps", "polish_steps")  # of parts of an attack that the passes of its rounds do not bound
FEW = 0.1  # of an attack's usual passes or steps: it may then end before it finds anything


def class_value(method: Any, name: str) -> Any:
    """Read what a method says of itself in a class variable; an object that is no `Method` may leave it unsaid."""
    return getattr(method, name, getattr(Method, name))


def has_setting(method: Any, setting: str) -> bool:
    """Return whether a built method has a setting of an audit as a field."""
    return is_dataclass(method) and setting in {field.name for field in fields(method)}


def unbuilt(method: Any) -> TypeGuard[type[Method]]:
    """Return whether a method is a class that still needs settings."""
    return isinstance(method, type)


def with_companions(methods: Mapping[str, Any], *, black: bool) -> dict[str, Any]:
    """Add the baselines that methods name as their companions, each after its method."""
    asked = set(methods) | {class_value(method, "name") for method in methods.values()}
    chosen: dict[str, Any] = {}
    for name, method in methods.items():
        chosen[name] = method
        companion = class_value(method, "companion")
        if companion and companion not in asked and _comes_along(METHODS[companion], method, black):
            chosen[companion] = METHODS[companion]
    return chosen


def _comes_along(companion: type[Method], method: Any, black: bool) -> bool:
    if companion.needs_black_fill and not black:
        return False
    # An object has settings of its own: no search is made for the sake of its companion.
    return unbuilt(method) or not any(companion.takes(setting) for setting in TUNED)


def build(methods: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """Build the methods whose settings are known; the others stay classes."""
    built = dict(methods)
    for name, method in methods.items():
        if _can_build(method, settings):
            built[name] = method.for_audit(**settings)
    return built


def _can_build(method: Any, settings: Mapping[str, Any]) -> bool:
    return unbuilt(method) and all(name in settings or not method.takes(name) for name in TUNED)


def are_built(methods: Mapping[str, Any]) -> bool:
    """Return whether every method has its settings."""
    return not any(unbuilt(method) for method in methods.values())


def method_for(method: Any, truth: Degradation) -> Any:
    """Start a method in the family of the damage: an attacker sees whether an image is blurred or has erased pixels."""
    if isinstance(truth, Erasure) or not has_setting(method, "start"):
        return method
    return replace(method, start=type(truth).first_guess)


def method_identity(method: Any) -> dict[str, Any]:
    """Give all that decides what a method computes, as plain values."""
    hyperparameters = plain(method) if is_dataclass(method) else {"repr": repr(method)}
    identity = {"kind": getattr(method, "kind", type(method).__name__), **hyperparameters}
    if (version := class_value(method, "version")) > 1:
        identity["version"] = version
    return identity


def names_with(methods: Mapping[str, Any], name: str, value: Any = True) -> list[str]:
    """List the methods that say this of themselves."""
    return [called for called, method in methods.items() if class_value(method, name) == value]


def attacks(methods: Mapping[str, Any]) -> list[str]:
    """List the attacks, which use the model and do not know the mask, in the order of their `headline_rank`."""
    knowing = names_with(methods, "knows_truth")
    unaided = [name for name in names_with(methods, "sees_model") if name not in knowing]
    return sorted(unaided, key=lambda name: -class_value(methods[name], "headline_rank"))


def counted_methods(methods: Mapping[str, Any]) -> list[str]:
    """List the methods that the headline counts: every attack; without one, the method of the highest rank."""
    return attacks(methods) or [max(methods, key=lambda name: class_value(methods[name], "headline_rank"))]


def strongest_attack() -> type[Method]:
    """Return the strongest attack that audits run by default."""
    defaults = {name: method for name, method in METHODS.items() if method.by_default}
    return defaults[attacks(defaults)[0]]


def strongest_left_out(methods: Mapping[str, Any]) -> str:
    """Name the strongest attack that audits run by default, if it is not among these methods."""
    strongest = strongest_attack().name
    return "" if names_with(methods, "name", strongest) else strongest


def weaknesses(methods: Mapping[str, Any], usual: Method, gammas: Sequence[float]) -> list[str]:
    """Say what makes the usually strongest attack weaker than usual; of several such attacks, of the least weak one.

    It is weak with few passes or steps, and with a gamma beside all that a search tries: it then listens to y alone, or
    to the model alone.
    """
    ran = [methods[name] for name in names_with(methods, "name", usual.name)]
    return min((list(_weaknesses(method, usual, gammas)) for method in ran), key=len, default=[])


def _weaknesses(method: Any, usual: Method, gammas: Sequence[float]) -> Iterator[str]:
    lowest, highest = min(gammas), max(gammas)
    if has_setting(method, "gamma") and not lowest <= method.gamma <= highest:
        yield f"a gamma of {method.gamma:g}, outside {lowest:g} to {highest:g}"
    passes, usual_passes = most_passes(method), most_passes(usual)
    if passes < FEW * usual_passes:
        yield f"at most {passes:,} passes through the model, usually {usual_passes:,}"
    for name in STEPS_APART:
        if has_setting(method, name) and getattr(method, name) < FEW * getattr(usual, name):
            yield f"{name}={getattr(method, name)}, usually {getattr(usual, name)}"


def most_passes(method: Any) -> int:
    """Return the most passes of one image through the model; a method without rounds or steps has one of these."""
    limit, steps = int(getattr(method, "limit", 1)), int(getattr(method, "steps", 1))
    return max(1, int(class_value(method, "most_passes")(limit, steps)))
