"""Check the prose of pages, notebooks, docstrings and comments: banned words, long sentences, long pages.

    python docs/prose.py

A page's length counts the words of its code and tables too. Sentences are those of paragraphs, list items and cells of
tables; code and headings have none. Pages that a command writes have no limit of length. The gallery does not count to
the pages for users: its notebooks are examples side by side, of which a reader opens one. Each has a limit of prose.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_SENTENCE = 25
ALL_USER_PAGES = 12_000
RESEARCH_NOTE = 1_500
NOTEBOOK = 300  # words of prose, without code and outputs
GENERATED = {"docs/reference/cli.md"}
USER_PAGES = (
    "README.md",
    "NOTATION.md",
    "docs/guide/*.md",
    "docs/concepts/*.md",
    "docs/reference/*.md",
)
RESEARCH_NOTES = "docs/research/*.md"
FOR_CONTRIBUTORS = ("CONTRIBUTING.md", "CHANGELOG.md", "docs/contributing/*.md", "docs/reference/cli.md")
NOTEBOOKS = "docs/notebooks/*.py"
CODE = ("recollect/**/*.py", "benchmarks/*.py", "docs/*.py")
LONGEST_IN_CODE = 40  # words of a sentence of a docstring
TECHNICAL = r"\bon the way\b|\bproducts\b"  # in docstrings: between start and end; of matrices with vectors
LIMITS = {
    "README.md": 700,
    "docs/research/performance.md": 600,
    "docs/guide/scale.md": 500,
    "docs/concepts/methods.md": 900,
    "docs/concepts/generic-baseline.md": 600,
    "docs/concepts/training.md": 700,
}

BANNED = {
    r"(?:give|gives|gave|given|read|reads|come|comes|came|bring|brings)(?: \w+){0,3} back": "recover",
    r"(?:bring|brings|brought|come|comes|came) out": "recover, appear, result",
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
    r"degraded": "damaged",
    r"(?:in|with|by) (?:a|one|these|those|its|no|few|other) words?": "message, sentence",
}


def read(*patterns: str) -> dict[str, str]:
    """Read files by their path in the repository."""
    paths = {path.relative_to(ROOT).as_posix(): path for pattern in patterns for path in ROOT.glob(pattern)}
    return {name: paths[name].read_text(encoding="utf-8") for name in sorted(paths)}


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs, list items and cells of tables of a page, without code, headings, comments and links."""
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", text, flags=re.S | re.M)
    yield from map(plain, cells(text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if block.lstrip("\n").startswith(("    ", "|", "#", "!", ":::", "\t")) or not block.strip():
            continue
        block = re.split(r"\n(?=[|#])", re.sub(r"^#.*\n", "", block.strip()))[0]
        yield plain(block)


def cells(text: str) -> Iterator[str]:
    """Yield the cells of tables, but those of the rules below their heads."""
    for row in re.findall(r"^\|(.*)\|$", text, re.M):
        yield from (cell for cell in re.split(r"(?<!\\)\|", row) if cell.strip(" -:"))


def plain(text: str) -> str:
    """Join lines, and leave out code and the targets of links."""
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", " ".join(text.split())))


def sentences(text: str) -> Iterator[str]:
    """Split the prose of a page at full stops, question and exclamation marks."""
    for paragraph in prose(text):
        paragraph = re.sub(r"\b(e\.g|i\.e|et al|vs|etc)\.", r"\1", paragraph)
        yield from (part for part in re.split(r"(?<=[.!?])[*_)\"]*\s+", paragraph) if part.strip())


def long_sentences(text: str, longest: int = LONGEST_SENTENCE) -> list[str]:
    """Name sentences of more words than are allowed."""
    counted = [(len(re.findall(r"\w[\w'.,%/-]*", part)), part) for part in sentences(text)]
    return [f"{count} words: {part}" for count, part in counted if count > longest]


def banned_words(text: str) -> list[str]:
    """Name words that are ruled out, with what to write instead."""
    joined = "\n".join(prose(text))
    matches = [
        (match[0], better) for word, better in BANNED.items() for match in re.finditer(rf"\b{word}\b", joined, re.I)
    ]
    return [f"'{word}': write {better}" for word, better in matches]


def words(text: str) -> int:
    """Count the words of a page, also those of its code and tables; bars, rules and signs are no words."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def long_pages(user: Mapping[str, str], research: Mapping[str, str]) -> list[str]:
    """Name pages beyond their limit, and say so if all pages for users together are too long."""
    counts = {name: words(text) for name, text in {**user, **research}.items()}
    limits = LIMITS | {name: RESEARCH_NOTE for name in research if name not in LIMITS}
    too_long = [f"{name}: {counts[name]} words of {limit}" for name, limit in limits.items() if counts[name] > limit]
    total = sum(counts[name] for name in user)
    if total > ALL_USER_PAGES:
        too_long.append(f"user pages: {total} words of {ALL_USER_PAGES}")
    return too_long


def long_notebooks(notebooks: Mapping[str, str]) -> list[str]:
    """Name notebooks with too much prose."""
    counts = {name: words(text) for name, text in notebooks.items()}
    return [f"{name}: {count} words of {NOTEBOOK}" for name, count in counts.items() if count > NOTEBOOK]


def notebook_prose(source: str) -> str:
    """Join the Markdown cells of a notebook in jupytext's percent format."""
    cells = re.split(r"^(?=# %%)", source, flags=re.M)
    return "\n\n".join(
        re.sub(r"^# ?", "", cell.partition("\n")[2], flags=re.M) for cell in cells if cell.startswith("# %% [markdown]")
    )


def docstrings(source: str) -> str:
    """Join the docstrings of a module, without sections of arguments and examples, which are lists and code."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return "\n\n".join(re.split(r"^(?:Args|Attributes|Returns|Examples):$", text, flags=re.M)[0] for text in texts)


def comments(source: str) -> str:
    """Join the comments of a module, each as a paragraph of its own."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n\n".join(token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)


def problems_of_code() -> list[str]:
    """Name what is wrong with docstrings, and the banned words of comments."""
    wrong = []
    for name, source in read(*CODE).items():
        text = docstrings(source)
        wrong += [f"{name}: {line}" for line in long_sentences(text, LONGEST_IN_CODE)]
        plain_text = re.sub(TECHNICAL, "", f"{text}\n\n{comments(source)}", flags=re.I)
        wrong += [f"{name}: {line}" for line in banned_words(plain_text)]
    return wrong


def problems() -> list[str]:
    """Name all that is wrong."""
    user, research, contributors = read(*USER_PAGES), read(RESEARCH_NOTES), read(*FOR_CONTRIBUTORS)
    notebooks = {name: notebook_prose(source) for name, source in read(NOTEBOOKS).items()}
    pages = {**user, **research, **contributors, **notebooks}
    wrong = [f"{name}: {line}" for name, text in pages.items() for line in long_sentences(text)]
    wrong += [f"{name}: {line}" for name, text in pages.items() for line in banned_words(text)]
    written = {name: text for name, text in user.items() if name not in GENERATED}
    return wrong + long_pages(written, research) + long_notebooks(notebooks) + problems_of_code()


if __name__ == "__main__":
    lines = problems()
    sys.exit("\n".join(lines) or None)
