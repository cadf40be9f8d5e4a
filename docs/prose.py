"""Check the prose of the documentation: banned words, long sentences, long pages.

    python docs/prose.py

Words of code and tables count too. Sentences are those of paragraphs and list items; code, tables and headings are not
counted. Pages that a command writes have no limit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
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


def user_pages() -> list[Path]:
    """List the pages that users read and somebody writes."""
    found = {path for pattern in USER_PAGES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if name_of(path) not in GENERATED)


def research_notes() -> list[Path]:
    """List the pages about measurements."""
    return sorted(ROOT.glob(RESEARCH_NOTES))


def name_of(page: Path) -> str:
    """Name a page by its path in the repository."""
    return page.relative_to(ROOT).as_posix()


def words(page: Path) -> int:
    """Count the words of a page, also those of its code and tables; bars, rules and signs are no words."""
    return sum(any(map(str.isalnum, word)) for word in page.read_text(encoding="utf-8").split())


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


def long_sentences(page: Path) -> list[str]:
    """Name sentences of more than 25 words."""
    counted = [(len(re.findall(r"\w[\w'.,%/-]*", part)), part) for part in sentences(page.read_text(encoding="utf-8"))]
    return [f"{name_of(page)}: {count} words: {part}" for count, part in counted if count > LONGEST_SENTENCE]


def banned_words(page: Path) -> list[str]:
    """Name words that WRITING rules out, with what to write."""
    text = " ".join(prose(page.read_text(encoding="utf-8")))
    found = [(match[0], better) for word, better in BANNED.items() for match in re.finditer(rf"\b{word}\b", text, re.I)]
    return [f"{name_of(page)}: '{word}': write {better}" for word, better in found]


def long_pages() -> list[str]:
    """Name pages beyond their limit."""
    limits = LIMITS | {name_of(note): RESEARCH_NOTE for note in research_notes()}
    counted = [(words(page), limits[name_of(page)], page) for page in pages() if name_of(page) in limits]
    found = [f"{name_of(page)}: {count} words of {limit}" for count, limit, page in counted if count > limit]
    total = sum(map(words, user_pages()))
    return found + [f"user pages: {total} words of {ALL_USER_PAGES}"] * (total > ALL_USER_PAGES)


def pages() -> list[Path]:
    """List all pages that are checked."""
    return user_pages() + research_notes()


def problems() -> list[str]:
    """Name all that is wrong."""
    found = [line for page in user_pages() for line in long_sentences(page)]
    return found + [line for page in pages() for line in banned_words(page)] + long_pages()


if __name__ == "__main__":
    lines = problems()
    sys.exit("\n".join(lines) or None)
