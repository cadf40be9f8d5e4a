"""The part of Python that torch writes into a TorchScript archive, and nothing more.

torch.jit.save writes classes with annotated fields, methods, plain assignments, loops, conditions and calls. This
module parses each source with `ast` and refuses every construct that torch does not write. Names decide nothing by
their spelling: `torch` and `ops` may only stand before an operator of the closed list, so no alias, `getattr` or escape
sequence can reach another operator. A checked source is written anew from its syntax tree, so that torch's own parser
never reads the original text.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import NoReturn

from recollect.models.refusals import Refused
from recollect.models.safety.operators import PRIMITIVES, SCRIPT_OPERATORS
from recollect.models.safety.torchscript_text import check_texts, longest_text

PLAIN_SOURCE = re.compile(r"[\n\x20-\x7e]*")
PLAIN_TEXT = re.compile(r"[\n\x20-\x5b\x5d-\x7e]*")  # no backslash, no control character but the line break
FIELD = re.compile(r"\w+", re.ASCII)  # submodules of a Sequential are called 0, 1, ...
CONSTANT = re.compile(r"CONSTANTS\.c\d+", re.ASCII)
BASES = {"Module", "NamedTuple", "Interface", "ModuleInterface", "Enum"}
HOOKS = {"__forward_pre_hooks__", "__forward_hooks__"}
FIELD_LISTS = {"__parameters__", "__buffers__", *HOOKS}
RUN_ON_LOADING = {"__setstate__", "__getstate__"}
FILE_OPERATORS = {"save", "load", "from_file", "open"}  # no class may lend these names to a call
NAMESPACES = {"torch", "ops", "CONSTANTS", "__torch__"}
FORMS_WITH_TYPES = {"annotate": 0, "unchecked_cast": 0, "uninitialized": 0, "isinstance": 1}  # and where the type is
FUNCTIONS = {"int", "float", "bool", "str", "complex", "range", "sorted"}
RESERVED = {*NAMESPACES, *FORMS_WITH_TYPES, "getattr", "print", "fork", "awaitable", "hasattr", "rpc_async"}
NUMBERS = {"inf", "nan", "infj", "nanj"}
TYPES = {"Tensor", "int", "float", "complex", "bool", "str", "number", "NoneType", "Device", "Any", "List", "Dict"}
TYPES |= {"Tuple", "Optional", "Union", "Final"}
DEEPEST_TYPE = 12  # types inside types: torch's time to compile one doubles with each


@dataclass
class Definitions:
    """What the sources of one archive define."""

    names: set[str] = field(default_factory=set)  # classes, functions and members of enums, with their modules
    fields: set[str] = field(default_factory=lambda: {"name", "value"})  # of an enum; classes add theirs
    methods: set[str] = field(default_factory=lambda: {"tolist"})  # of a tensor; classes add theirs
    field_types: dict[tuple[str, str], ast.expr] = field(default_factory=dict)  # by class and field
    longest_text: int = 0  # that a field or constant may hold
    joined_text: int = 0  # that the sources checked so far make

    def holds_class(self, owner: str, name: str, made: str) -> bool:
        """Say whether a field of a class is declared to hold objects of the class `made`, and of no other."""
        declared = self.field_types.get((owner, name))
        if isinstance(declared, ast.Subscript) and _dotted(declared.value) == "Optional":
            declared = declared.slice
        return declared is not None and _dotted(declared) == made


def parse_source(content: bytes, name: str) -> ast.Module:
    """Parse one source of an archive."""
    try:
        text = content.decode("ascii")
        if not PLAIN_SOURCE.fullmatch(text):
            raise Refused(f"its code in {name} holds a control character")
        tree = ast.parse(text)
    except UnicodeDecodeError:
        raise Refused(f"its code in {name} is not plain ASCII") from None
    except (RecursionError, MemoryError):
        raise Refused(f"its code in {name} is nested too deeply") from None
    except (SyntaxError, ValueError):
        raise Refused(f"its code in {name} cannot be parsed") from None
    tree.body = [statement for statement in tree.body if not _is_old_header(statement)]
    return tree


def _is_old_header(statement: ast.stmt) -> bool:
    """Recognise the lines that early versions of torch wrote first, which torch skips."""
    if isinstance(statement, ast.Import):
        return True
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "op_version_set"


def collect_definitions(trees: dict[str, ast.Module]) -> Definitions:
    """Collect the names that sources define, by the module that each source is."""
    definitions = Definitions(longest_text=max(map(longest_text, trees.values()), default=0))
    for module, tree in trees.items():
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                name = f"{module}.{statement.name}"
                _require(name not in definitions.names, statement, "defines twice")
                definitions.names.add(name)
            if isinstance(statement, ast.ClassDef):
                _collect_members(statement, f"{module}.{statement.name}", definitions)
    return definitions


def _collect_members(node: ast.ClassDef, name: str, definitions: Definitions) -> None:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            definitions.methods.add(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            definitions.fields.add(statement.target.id)
            _declare(name, statement.target.id, statement.annotation, definitions)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            definitions.names.add(f"{name}.{statement.targets[0].id}")  # a member of an enum
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            _declare(name, _text(statement.targets[0].slice), statement.value, definitions)


def _declare(owner: str, name: str, declared: ast.expr, definitions: Definitions) -> None:
    """Note the type of a field; two types for one field would leave open which of them torch takes."""
    _require((owner, name) not in definitions.field_types, declared, "declares a field twice, as")
    definitions.field_types[owner, name] = declared


def rewrite_source(tree: ast.Module, definitions: Definitions, name: str) -> bytes:
    """Check a source and write it anew."""
    try:
        SourceCheck(definitions).visit(tree)
        definitions.joined_text = check_texts(tree, definitions.longest_text, definitions.joined_text)
        return ast.unparse(tree).encode("ascii") + b"\n"
    except RecursionError:
        raise Refused(f"its code in {name} is nested too deeply") from None


def check_type(node: ast.AST, definitions: Definitions, depth: int = 0) -> None:
    """Refuse a type that is neither plain nor defined in the archive, and one that is nested deeply."""
    _require(depth <= DEEPEST_TYPE, node, "uses the deeply nested type")
    if isinstance(node, ast.Tuple):
        for element in node.elts:
            check_type(element, definitions, depth)
    elif isinstance(node, ast.Subscript):
        check_type(node.value, definitions, depth)
        check_type(node.slice, definitions, depth + 1)
    elif isinstance(node, ast.Attribute):
        _require(_dotted(node) in definitions.names, node, "uses the type")
    elif isinstance(node, ast.Name):
        _require(node.id in TYPES, node, "uses the type")
    else:
        _require(isinstance(node, ast.Constant) and node.value is None, node, "uses the type")


def check_type_text(text: str, definitions: Definitions) -> None:
    """Refuse a type that stands as text among an archive's values."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Refused(f"its values have the type {text[:60]!r}, which is no type") from None
    check_type(tree.body, definitions)


class SourceCheck(ast.NodeVisitor):
    """Visit a source; a node without a method here is refused."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.locals: set[str] = set()

    def generic_visit(self, node: ast.AST) -> None:
        _refuse(node, f"holds a {type(node).__name__}")

    def _visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    def _type(self, node: ast.AST | None) -> None:
        if node is not None:
            check_type(node, self.definitions)

    # Modules and classes

    def visit_Module(self, node: ast.Module) -> None:
        for statement in node.body:
            if isinstance(statement, ast.ClassDef):
                self._visit_class(statement)
            else:
                self._visit_function(statement)

    def _visit_class(self, node: ast.ClassDef) -> None:
        bases = [base.id if isinstance(base, ast.Name) else "" for base in node.bases]
        plain = len(bases) <= 1 and BASES.issuperset(bases) and not node.keywords and not node.decorator_list
        _require(plain, node, "holds the class")
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                self._visit_class_assignment(statement, node)
            elif isinstance(statement, ast.AnnAssign):
                self._visit_field(statement)
            elif not isinstance(statement, ast.Pass):
                self._visit_function(statement)

    def _visit_class_assignment(self, node: ast.Assign, inside: ast.ClassDef) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Subscript):  # __annotations__["0"] = Tensor
            key = _text(target.slice)
            _require(_dotted(target.value) == "__annotations__", node, "holds in a class")
            _require(FIELD.fullmatch(key) and key not in FILE_OPERATORS, node, "has the field")
            self._type(node.value)
            return
        _require(isinstance(target, ast.Name) and len(node.targets) == 1, node, "holds in a class")
        if _dotted(target) in FIELD_LISTS:
            self._visit_field_list(node, inside)
        self.visit(node.value)

    def _visit_field_list(self, node: ast.Assign, inside: ast.ClassDef) -> None:
        if not isinstance(node.value, ast.List):
            _refuse(node, "holds in a class")
        listed = {_text(element) for element in node.value.elts}
        methods = {statement.name for statement in inside.body if isinstance(statement, ast.FunctionDef)}
        if _dotted(node.targets[0]) in HOOKS:  # torch crashes where a hook is missing
            _require(listed <= methods, node, "holds in a class")

    def _visit_field(self, node: ast.AnnAssign) -> None:
        _require(isinstance(node.target, ast.Name), node, "has the field")
        _require(_dotted(node.target) not in FILE_OPERATORS, node, "has the field")
        self._type(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def _visit_function(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.FunctionDef):
            _refuse(node, "holds")
        if node.name in RUN_ON_LOADING:
            raise Refused(f"its code has a {node.name}, which runs when the file is loaded")
        _require(not node.decorator_list and node.name not in FILE_OPERATORS, node, "defines")
        self.locals = self._visit_arguments(node) | _assigned_names(node)
        _require(not self.locals & RESERVED, node, "gives a new meaning to a name of torch in")
        self._visit_all(node.body)
        self.locals = set()

    def _visit_arguments(self, node: ast.FunctionDef) -> set[str]:
        """Check the arguments of a function and what it returns; return the arguments' names."""
        given = node.args
        _require(not (given.posonlyargs or given.vararg or given.kwarg), node, "defines")
        arguments = [*given.args, *given.kwonlyargs]
        self._visit_all([*given.defaults, *(default for default in given.kw_defaults if default is not None)])
        for annotation in [*(argument.annotation for argument in arguments), node.returns]:
            self._type(annotation)
        return {argument.arg for argument in arguments}

    # Statements

    def visit_Assign(self, node: ast.Assign) -> None:
        _require(len(node.targets) == 1, node, "holds")
        self._visit_target(node.targets[0])
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._visit_target(node.target)
        self._type(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def _visit_target(self, node: ast.expr) -> None:
        if isinstance(node, ast.Tuple):
            for element in node.elts:
                _require(isinstance(element, ast.Name), node, "assigns to")
        else:
            _require(isinstance(node, ast.Name | ast.Attribute), node, "assigns to")
        self.visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._visit_all([*node.body, *node.orelse])

    def visit_While(self, node: ast.While) -> None:
        _require(not node.orelse, node, "holds")
        self.visit(node.test)
        self._visit_all(node.body)

    def visit_For(self, node: ast.For) -> None:
        _require(not node.orelse and isinstance(node.target, ast.Name), node, "holds")
        self.visit(node.iter)
        self._visit_all(node.body)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:  # with torch.no_grad() becomes an object of a class in the archive
            _require(isinstance(item.context_expr, ast.Name), node, "holds")
            self.visit(item.context_expr)
            _require(item.optional_vars is None or isinstance(item.optional_vars, ast.Name), node, "holds")
        self._visit_all(node.body)

    def visit_Expr(self, node: ast.Expr) -> None:
        _require(isinstance(node.value, ast.Call | ast.Name), node, "holds")
        self.visit(node.value)

    def visit_Pass(self, node: ast.Pass) -> None:
        """Accept a pass."""

    # Values

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            _text(node)
        else:
            _require(isinstance(node.value, int | float | complex | None), node, "holds")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        number = isinstance(node.operand, ast.Constant) or _dotted(node.operand) in NUMBERS
        _require(isinstance(node.op, ast.USub) and number, node, "holds")
        self.visit(node.operand)

    def visit_Name(self, node: ast.Name) -> None:
        _require(node.id in self.locals or node.id in NUMBERS, node, "uses")

    def visit_List(self, node: ast.List) -> None:
        self._visit_all(node.elts)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self._visit_all(node.elts)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._visit_all([key for key in node.keys if key is not None])
        _require(None not in node.keys, node, "holds")
        self._visit_all(node.values)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self.visit(node.slice)

    def visit_Slice(self, node: ast.Slice) -> None:
        self._visit_all([part for part in (node.lower, node.upper, node.step) if part is not None])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        if dotted.startswith("__torch__."):
            _require(dotted in self.definitions.names, node, "uses")
        elif not CONSTANT.fullmatch(dotted):
            _require(node.attr in self.definitions.fields, node, "uses")
            self.visit(node.value)

    # Calls

    def visit_Call(self, node: ast.Call) -> None:
        name = _dotted(node.func)
        if name in FORMS_WITH_TYPES:
            self._visit_form(node, FORMS_WITH_TYPES[name])
            return
        if name == "getattr":
            self._visit_getattr(node)
            return
        if name.startswith("__torch__.") and name.endswith(".__new__"):
            name = name.removesuffix(".__new__")
            _require([_dotted(argument) for argument in node.args] == [name], node, "calls")
        self._visit_callee(node.func, name)
        self._visit_all(node.args)
        for keyword in node.keywords:
            _require(keyword.arg, node, "calls")
            self.visit(keyword.value)

    def _visit_callee(self, node: ast.expr, name: str) -> None:
        root = name.partition(".")[0]
        if root == "__torch__":
            _require(name in self.definitions.names, node, "calls")
        elif root in ("torch", "ops"):
            _require(is_operator(name), node, "calls")
        elif isinstance(node, ast.Attribute):
            _require(node.attr in self.definitions.methods, node, "calls")
            self.visit(node.value)
        else:
            _require(name in FUNCTIONS or name in self.locals, node, "calls")

    def _visit_form(self, node: ast.Call, position: int) -> None:
        _require(len(node.args) > position and not node.keywords, node, "calls")
        if _dotted(node.func) == "unchecked_cast":  # torch reads fields of an object by its supposed class
            _require(not _names_class(node.args[position]), node, "takes a value for an object of a class by")
        self._type(node.args[position])
        self._visit_all([argument for index, argument in enumerate(node.args) if index != position])

    def _visit_getattr(self, node: ast.Call) -> None:
        _require(len(node.args) == 2 and not node.keywords, node, "calls")
        key = _text(node.args[1])
        _require(FIELD.fullmatch(key) and key not in FILE_OPERATORS, node, "calls")
        self.visit(node.args[0])


def is_operator(name: str) -> bool:
    """Say whether a dotted name is one of the operators that only compute."""
    for prefix, operators in (("torch.", SCRIPT_OPERATORS), ("ops.aten.", SCRIPT_OPERATORS), ("ops.prim.", PRIMITIVES)):
        if name.startswith(prefix) and name.removeprefix(prefix) in operators:
            return True
    return False


def _names_class(annotation: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) for part in ast.walk(annotation))


def _dotted(node: ast.AST) -> str:
    """Spell a chain of plain names, a.b.c; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _assigned_names(node: ast.FunctionDef) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _text(node: ast.AST) -> str:
    """Read a literal text without backslashes and control characters."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        _refuse(node, "needs a literal name in place of")
    if not PLAIN_TEXT.fullmatch(node.value):
        _refuse(node, "holds the text")
    return node.value


def _require(condition: object, node: ast.AST, what: str) -> None:
    if not condition:
        _refuse(node, what)


def _refuse(node: ast.AST, what: str) -> NoReturn:
    lines = ast.unparse(node).splitlines() or [""]
    raise Refused(f"its code {what} {lines[0][:80]!r}, which is not among what Recollect lets TorchScript do")
