"""The names of canaries, by their position: no name in a file is ever used as a path."""

from __future__ import annotations


def canary_names(count: int) -> tuple[str, ...]:
    """Name the canaries whose coins are tossed."""
    return tuple(f"canary-{number:04}" for number in range(count))


def known_names(count: int) -> tuple[str, ...]:
    """Name the canaries that are always in."""
    return tuple(f"known-{number:04}" for number in range(count))
