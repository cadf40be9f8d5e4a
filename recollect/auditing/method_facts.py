"""What audit.json says of each method, for the report and other readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.auditing.method_setup import class_value

FACTS = ("summary", "label", "colour", "knows_truth", "sees_model", "in_rounds")


def method_facts(methods: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Describe the methods of an audit, in the order of help and legends."""
    ordered = sorted(methods.items(), key=lambda item: class_value(item[1], "order"))
    return {name: _facts(name, method) for name, method in ordered}


def _facts(name: str, method: Any) -> dict[str, Any]:
    """Take what the method says of itself; one that says nothing is described as an attack without a label."""
    facts = {fact: class_value(method, fact) for fact in FACTS}
    if getattr(method, "name", name) != name or not facts["label"]:
        facts["label"] = name  # the user named it: two of a kind need two labels
    return facts
