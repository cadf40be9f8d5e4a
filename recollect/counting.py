"""Counts as they are written in sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping


def counted(count: int, noun: str) -> str:
    """Write a number of things: 1 mask, 2 masks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def with_article(name: str) -> str:
    """Write a or an before a name, such as that of a class: an Iterator, a UNet."""
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def counted_kinds(counts: Mapping[str, int], noun: str) -> str:
    """Write the numbers of things of several kinds: 1 training and 20 unseen images."""
    *before, last = counts
    return " and ".join([*(f"{counts[kind]} {kind}" for kind in before), counted(counts[last], f"{last} {noun}")])


def of_kind(sentence: str, kind: str) -> str:
    """Write a sentence about images for the kind of things that a set holds: images, signals or rows."""
    if kind == "images":
        return sentence
    nouns = {"images": kind, "pictures": kind, "pixels": "values"}
    nouns |= {plural.removesuffix("s"): noun.removesuffix("s") for plural, noun in nouns.items()}
    nouns |= {noun.capitalize(): other.capitalize() for noun, other in nouns.items()}
    return re.sub(rf"\b({'|'.join(nouns)})\b", lambda match: nouns[match[0]], sentence)
