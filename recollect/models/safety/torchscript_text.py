"""How long the texts of a TorchScript source can become while torch compiles it.

torch computes texts from literal ones when it loads a model, before anything is called. A text that is joined to itself
thirty times would fill all memory. Here the lengths are added up without joining anything.
"""

from __future__ import annotations

import ast

from recollect.models.refusals import Refused

JOINING = {"add", "format", "percentFormat", "str", "join", "upper", "lower", "strip", "lstrip", "rstrip"}
FORMS = {"annotate", "unchecked_cast"}
MOST = 2**26  # characters of all joined texts of an archive; long chains of sums stay far below
SHORTEST = 64  # what a field or constant counts that may be a text


def longest_text(tree: ast.AST) -> int:
    """Return the length of the longest literal text in a source."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return max(map(len, texts), default=0)


def check_texts(tree: ast.Module, longest: int, joined: int) -> int:
    """Refuse a source if it joins too much text; return how much all sources so far have joined.

    `longest` is the longest text that a field or constant holds; `joined` is what sources before this one have joined.
    """
    texts = Texts(max(longest, SHORTEST), joined)
    texts.visit(tree)
    return texts.joined


class Texts(ast.NodeVisitor):
    """Follow the statements of a source with a length in place of each value."""

    def __init__(self, longest: int, joined: int) -> None:
        self.longest, self.joined = longest, joined
        self.lengths: dict[str, int] = {}  # of the variables of a function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.lengths = {}
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets[0], self._length(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._length(node.value))

    def visit_Call(self, node: ast.Call) -> None:
        self._length(node)

    def _assign(self, target: ast.expr, length: int) -> None:
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                self.lengths[part.id] = max(length, self.lengths.get(part.id, 0))

    def _length(self, node: ast.expr) -> int:
        """Bound the length of a value, if it is a text that torch knows on loading; else return zero."""
        if isinstance(node, ast.Constant):
            return len(node.value) if isinstance(node.value, str) else 0
        if isinstance(node, ast.Name):
            return self.lengths.get(node.id, 0)
        if isinstance(node, ast.Attribute):
            return self.longest
        if isinstance(node, ast.Call):
            return self._length_of_call(node)
        return sum(self._length(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))

    def _length_of_call(self, node: ast.Call) -> int:
        length = sum(map(self._length, [*node.args, *(keyword.value for keyword in node.keywords)]))
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Name) and node.func.id in FORMS:
            return length
        if name not in JOINING:
            return 0
        self.joined += length
        if self.joined > MOST:
            raise Refused(f"its code joins more than {MOST:,} characters of text")
        return length
