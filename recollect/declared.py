"""What the members of a registry say of themselves, read from their source: importing them waits seconds for torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

Facts = Mapping[str, Any]  # the literal values of a class or a call, by name
SHOWN = ("name", "summary", "example")  # what help and error messages show


class _Computed(Exception):
    """What is shown is no literal, so only an import tells it."""


def declared(package: str, *kinds: str) -> dict[str, Facts] | None:
    """Read what classes with a name of their own and calls of `kinds` say, in the order of the registry of a package.

    None if members must be imported to be known: another package registers some, or a name or summary is computed.
    """
    if entry_points(group=package):
        return None
    folder = Path(__file__).parent.joinpath(*package.split(".")[1:])
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.py"))]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    try:
        members = [*_classes(nodes), *_calls(nodes, kinds)]
    except _Computed:
        return None
    named = [facts for facts in members if facts.get("name")]
    return {facts["name"]: facts for facts in sorted(named, key=_order)}


def _order(facts: Facts) -> tuple[int, str]:
    return facts.get("order", 100), facts["name"]


def _classes(nodes: Sequence[ast.AST]) -> Iterator[Facts]:
    """Read each class with a name of its own, and what it inherits from a class of the same package."""
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        own = class_variables(node)
        if own.get("name"):
            yield {**_inherited(node, classes), **own}


def _inherited(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> dict[str, Any]:
    bases = [classes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
    facts: dict[str, Any] = {}
    for base in reversed(bases):
        facts |= _inherited(base, classes) | class_variables(base)
    return facts


def class_variables(node: ast.ClassDef) -> dict[str, Any]:
    """Read the variables of a class that are literals, with and without an annotation."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and line.value:
            pairs.append((line.target, line.value))
        if isinstance(line, ast.Assign):
            pairs += [(target, line.value) for target in line.targets]
    return _literals((target.id, value) for target, value in pairs if isinstance(target, ast.Name))


def _calls(nodes: Sequence[ast.AST], kinds: Sequence[str]) -> Iterator[Facts]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
            positional = zip(("name", "summary"), node.args, strict=False)
            yield _literals([*positional, *((word.arg, word.value) for word in node.keywords if word.arg)])


def _literals(pairs: Any) -> dict[str, Any]:
    values = {}
    for name, value in pairs:
        try:
            values[name] = ast.literal_eval(value)
        except ValueError:
            if name in SHOWN:
                raise _Computed from None
    return values
