"""Check the prose of the documentation: banned words, long sentences, long pages.

    python docs/prose.py

Words of code and tables count too. Sentences are those of paragraphs and list items; code, tables and headings are not
counted. Pages that a command writes have no limit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_SENTENCE = 25
ALL_USER_PAGES = 12_000
RESEARCH_NOTE = 1_500
GENERATED = {"docs/reference/cli.md"}
USER_PAGES = ("README.md", "NOTATION.md", "docs/guide/*.md", "docs/concepts/*.md", "docs/reference/*.md")
RESEARCH_NOTES = "docs/research/*.md"
LIMITS = {
    "README.md": 700,
    "docs/guide/scale.md": 500,
    "docs/concepts/methods.md": 900,
    "docs/concepts/generic-baseline.md": 600,
    "docs/concepts/training.md": 700,
}

BANNED = {
    r"(?:give|gives|gave|given|read|reads|come|comes|came|bring|brings) back": "recover",
    r"(?:bring|brings|brought) out": "recover",
    r"on record": "recorded, saved",
    r"in work": "in the working set",
    r"(?:go|goes|went|gone) on with": "resume, continue",
    r"be had": "available",
    r"without a word": "silently",
    r"by (?:Muon|Adam)\b": "trained with Muon",
    r"products": "matrix multiplications",
    r"floor": "network alone",
    r"ways?": "method, manner, or leave it out",
    r"looks?": "check, search, appearance",
    r"(?<!in )places?": "position, cell",
    r"hands? on": "copy",
    r"what is said": "message",
}


def read(*patterns: str) -> dict[str, str]:
    """Read the pages that somebody writes, by their path in the repository."""
    paths = {path.relative_to(ROOT).as_posix(): path for pattern in patterns for path in ROOT.glob(pattern)}
    return {name: paths[name].read_text(encoding="utf-8") for name in sorted(paths) if name not in GENERATED}


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a page, without code, tables, headings, comments and links."""
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", text, flags=re.S | re.M)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if block.lstrip("\n").startswith(("    ", "|", "#", "!", ":::", "\t")) or not block.strip():
            continue
        block = re.split(r"\n(?=[|#])", re.sub(r"^#.*\n", "", block.strip()))[0]
        yield re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", " ".join(block.split())))


def sentences(text: str) -> Iterator[str]:
    """Split the prose of a page at full stops, question and exclamation marks."""
    for paragraph in prose(text):
        paragraph = re.sub(r"\b(e\.g|i\.e|et al|vs|etc)\.", r"\1", paragraph)
        yield from (part for part in re.split(r"(?<=[.!?])[*_)\"]*\s+", paragraph) if part.strip())


def long_sentences(text: str) -> list[str]:
    """Name sentences of more than 25 words."""
    counted = [(len(re.findall(r"\w[\w'.,%/-]*", part)), part) for part in sentences(text)]
    return [f"{count} words: {part}" for count, part in counted if count > LONGEST_SENTENCE]


def banned_words(text: str) -> list[str]:
    """Name words that are ruled out, with what to write instead."""
    plain = " ".join(prose(text))
    found = [
        (match[0], better) for word, better in BANNED.items() for match in re.finditer(rf"\b{word}\b", plain, re.I)
    ]
    return [f"'{word}': write {better}" for word, better in found]


def words(text: str) -> int:
    """Count the words of a page, also those of its code and tables; bars, rules and signs are no words."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def long_pages(user: Mapping[str, str], research: Mapping[str, str]) -> list[str]:
    """Name pages beyond their limit, and say so if all pages for users together are too long."""
    counts = {name: words(text) for name, text in {**user, **research}.items()}
    limits = LIMITS | dict.fromkeys(research, RESEARCH_NOTE)
    found = [f"{name}: {counts[name]} words of {limit}" for name, limit in limits.items() if counts[name] > limit]
    total = sum(counts[name] for name in user)
    return found + [f"user pages: {total} words of {ALL_USER_PAGES}"] * (total > ALL_USER_PAGES)


def problems() -> list[str]:
    """Name all that is wrong."""
    user, research = read(*USER_PAGES), read(RESEARCH_NOTES)
    found = [f"{name}: {line}" for name, text in user.items() for line in long_sentences(text)]
    found += [f"{name}: {line}" for name, text in {**user, **research}.items() for line in banned_words(text)]
    return found + long_pages(user, research)


if __name__ == "__main__":
    lines = problems()
    sys.exit("\n".join(lines) or None)
