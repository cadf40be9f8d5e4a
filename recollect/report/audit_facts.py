"""What was audited, how, and with which checks: the texts of audit.json in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from recollect.counting import counted
from recollect.report.numbers import as_text, flattened
from recollect.report.read import SavedAudit, disagreements
from recollect.report.results import Results

LEVELS = ("warning", "note", "ok")
SUBJECTS = {
    "model": "Model",
    "train": "Training images",
    "control": "Unseen images",
    "prior": "Diffusion prior",
}
PROVENANCE = {
    "settings": "Settings",
    "model": "Model",
    "train": "Training images",
    "control": "Unseen images",
    "provenance": "Run on",
}
HASH_DIGITS = 12


class Block(NamedTuple):
    """A heading, a name, and rows of label and text."""

    title: str
    name: str
    rows: list[tuple[str, str]]


def checks_by_level(audit: SavedAudit) -> dict[str, list[dict[str, str]]]:
    """Group the checks, warnings first; files that disagree are a warning of the report itself."""
    own = [{"name": "summary", "level": "warning", "sentence": sentence} for sentence in disagreements(audit)]
    checks = [*own, *audit.table("checks")]
    return {level: [check for check in checks if check["level"] == level] for level in LEVELS}


def subjects(audit: SavedAudit, results: Results) -> Iterator[Block]:
    """Describe the model, the images and the methods of the audit."""
    for key, title in SUBJECTS.items():
        facts = dict(audit.block(key))
        if facts:
            name = as_text(facts.pop("name", None))
            known = [(label, text) for label, text in flattened(facts) if text not in ("", as_text(None))]
            yield Block(title, name, [_shortened(label, text) for label, text in known])
    if "control" not in results.sets:
        yield Block("Unseen images", "none", [("", "Without unseen images, no rate can be attributed to memory.")])
    yield _attempts(results)


def not_run(audit: SavedAudit) -> list[tuple[str, str, str]]:
    """List the methods that the audit left out: name, kind and summary."""
    left_out = audit.block("scope").get("not_run", {})
    return [(name, _kind(facts), facts["summary"]) for name, facts in left_out.items()]


def methods_run(results: Results) -> list[tuple[str, str, str]]:
    """List the methods that were run: name, kind and summary."""
    listed = []
    for method in results.method_facts.values():
        kind = "attack" if method.is_attack else "reference"
        listed.append((method.name, kind, method.summary))
    return listed


def provenance(audit: SavedAudit) -> list[Block]:
    """List everything that decides the numbers."""
    blocks = [Block(title, "", list(flattened(audit.block(key)))) for key, title in PROVENANCE.items()]
    return [block for block in blocks if block.rows]


def _kind(facts: Mapping[str, Any]) -> str:
    return "attack" if facts["sees_model"] and not facts["knows_truth"] else "reference"


def _attempts(results: Results) -> Block:
    methods = results.method_facts.values()
    attacks = [method.name for method in methods if method.is_attack]
    references = [method.name for method in methods if not method.is_attack]
    rows = [("masks", results.masks), ("attacks", attacks), ("references", references)]
    name = f"{counted(len(results.masks), 'mask')} × {counted(len(results.methods), 'method')}"
    return Block("Attempts", name, [(label, ", ".join(names)) for label, names in rows if names])


def _shortened(label: str, text: str) -> tuple[str, str]:
    """Cut hashes, which stand in full in the provenance."""
    if label.endswith("hash"):
        return label, text[:HASH_DIGITS]
    return label, text
