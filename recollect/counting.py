"""Counts as they are written in sentences."""

from __future__ import annotations

from collections.abc import Mapping


def counted(count: int, noun: str) -> str:
    """Write a number of things: 1 mask, 2 masks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted_kinds(counts: Mapping[str, int], noun: str) -> str:
    """Write the numbers of things of several kinds: 1 training and 20 unseen images."""
    *before, last = counts
    return " and ".join([*(f"{counts[kind]} {kind}" for kind in before), counted(counts[last], f"{last} {noun}")])
