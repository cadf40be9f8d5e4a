"""Reading a torch.export program before torch does: only names, numbers and torch's own computing operators pass.

torch.export.load unpickles parts of an archive, evaluates its shape expressions and guards as Python, writes names
from it into generated code, and resolves operators by any dotted name below `torch`. So all of that is checked here
against what an exported network needs, and dropped where nothing needs it.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import torch

from recollect.models.refusals import Refused
from recollect.models.safety.operators import TENSOR_OPERATORS

NAME = re.compile(r"[\w.]*", re.ASCII)
TEXT = re.compile(r"[\w .,:;<>=!+*/()\[\]&|^%-]*", re.ASCII)  # no quotes, backslashes or line breaks
VERSION = re.compile(r"[\w.+-]*", re.ASCII)
ATEN = re.compile(r"torch\.ops\.aten\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
ARITHMETIC = ("getitem", "add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "pow")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "not_")
OTHER_OPERATORS = {f"_operator.{name}" for name in (*ARITHMETIC, *COMPARISONS)}
OTHER_OPERATORS |= {f"math.{name}" for name in ("ceil", "floor", "trunc")}
OTHER_OPERATORS |= {f"torch.sym_{name}" for name in ("int", "float", "max", "min", "not", "sum", "ite")}
FUNCTIONS = {"Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Max", "Min", "Abs", "Eq", "Ne", "Lt", "Le"}
FUNCTIONS |= {"Gt", "Ge", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "ModularIndexing", "IntTrueDiv"}
FUNCTIONS |= {"FloatTrueDiv", "ToFloat", "TruncToInt", "FloorToInt", "CeilToInt", "PowByNatural", "Identity"}
SYMBOL = re.compile(r"[a-z]{1,5}\d+", re.ASCII)  # s77, u0
POWERS = {"Pow", "PowByNatural"}
OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
EXPONENT = re.compile(r"-?[0-2]|Integer\(-?[0-2]\)")  # of a power
SYMBOLS, MOST_SYMBOLS = re.compile(r"\b[a-z]{1,5}\d+", re.ASCII), 6  # torch simplifies shapes; more takes minutes
LARGEST = 2**64  # no tensor has more elements
CONTAINERS = {None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"}


def checked(value: Any, key: str = "") -> Any:
    """Copy a program's JSON without what may run, or raise Refused."""
    if isinstance(value, dict):
        return {_plain(name): _entry(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [checked(part, key) for part in value]
    if isinstance(value, str):
        _check_text(key, value)
    return value


def _entry(name: str, part: Any) -> Any:
    if name == "metadata":
        return {}  # stack traces and module names, for people
    if name == "guards_code":
        return []  # Python that checks input shapes; the probe does that here
    return checked(part, name)


def _plain(name: str) -> str:
    if not NAME.fullmatch(name):
        raise Refused(f"it holds the name {name[:60]!r}, which is not a plain one")
    return name


def _check_text(key: str, text: str) -> None:
    if key in ("target", "as_operator"):
        check_operator(text)
    elif key == "expr_str":
        check_expression(text)
    elif key in ("in_spec", "out_spec"):
        _check_container_text(text)
    else:
        allowed = {"as_string": TEXT, "as_strings": TEXT, "torch_version": VERSION}.get(key, NAME)
        if not allowed.fullmatch(text):
            raise Refused(f"its {key} {text[:60]!r} is not a plain name")


def check_operator(target: str) -> None:
    """Refuse an operator that is not on the list of those that only compute."""
    if target in OTHER_OPERATORS:
        return
    operator = ATEN.fullmatch(target)
    if operator is None or not _is_listed(name=operator[1], overload=operator[2]):
        raise Refused(f"it uses {target[:80]!r}, which is not on the list of operators that only compute")


def _is_listed(name: str, overload: str) -> bool:
    if name not in TENSOR_OPERATORS:
        return False
    packet = getattr(torch.ops.aten, name, None)
    return isinstance(packet, torch._ops.OpOverloadPacket) and overload in packet.overloads()


def check_expression(text: str) -> None:
    """Check a shape such as 2*s0, which is evaluated as Python: numbers, symbols and known functions."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        raise Refused(f"the shape {text[:60]!r} is no expression") from None
    if len(text) > 2000 or not _is_arithmetic(tree.body):
        raise Refused(f"the shape {text[:60]!r} is more than arithmetic")
    if len(SYMBOLS.findall(text)) > MOST_SYMBOLS:
        raise Refused(f"the shape {text[:60]!r} uses more than {MOST_SYMBOLS} sizes")


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_operation(node)
    if isinstance(node, ast.UnaryOp):
        return _is_arithmetic(node.operand)
    if isinstance(node, ast.Compare):
        return all(map(_is_arithmetic, [node.left, *node.comparators]))
    if isinstance(node, ast.Name):
        return bool(SYMBOL.fullmatch(node.id))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float | bool) and abs(node.value) < LARGEST
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        return _is_call(node, node.func.id)
    return False


def _is_call(node: ast.Call, name: str) -> bool:
    if name in POWERS:
        return _is_small_power(node.args) and not node.keywords
    return _has_plain_arguments(node, is_symbol=name == "Symbol")


def _is_operation(node: ast.BinOp) -> bool:
    if isinstance(node.op, ast.Pow):
        return _is_small_power([node.left, node.right])
    return isinstance(node.op, OPERATIONS) and _is_arithmetic(node.left) and _is_arithmetic(node.right)


def _is_small_power(arguments: list[ast.expr]) -> bool:
    """Accept s0**2; a power of powers, or one with a large exponent, has more digits than memory has room for."""
    if len(arguments) != 2 or not EXPONENT.fullmatch(ast.unparse(arguments[1])):
        return False
    base = arguments[0]
    return not any(_is_power(part) for part in ast.walk(base)) and _is_arithmetic(base)


def _is_power(node: ast.AST) -> bool:
    return isinstance(node, ast.Pow) or (isinstance(node, ast.Name) and node.id in POWERS)


def _has_plain_arguments(call: ast.Call, *, is_symbol: bool) -> bool:
    arguments = list(call.args)
    if is_symbol and arguments and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, str):
        if not SYMBOL.fullmatch(arguments[0].value):
            return False
        arguments = arguments[1:]
    settings = [keyword.value for keyword in call.keywords]
    return all(map(_is_arithmetic, arguments)) and all(
        isinstance(s, ast.Constant) and s.value in (True, False, None) for s in settings
    )


def _check_container_text(text: str) -> None:
    """How inputs and outputs are nested; its types are looked up, and enums in it imported, by name."""
    try:
        _check_container(json.loads(text)[1] if text else {"type": None, "context": None, "children_spec": []})
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise Refused(f"its output structure {text[:60]!r} is not understood") from None


def _check_container(spec: dict[str, Any]) -> None:
    if spec["type"] not in CONTAINERS:
        raise Refused(f"it returns a {str(spec['type'])[:60]}; export a model that returns tensors, tuples or dicts")
    context = spec["context"]
    keys = json.loads(context) if isinstance(context, str) else context
    if keys is not None and not (isinstance(keys, list) and all(isinstance(k, str | int) for k in keys)):
        raise Refused("its output structure holds more than names")
    for child in spec["children_spec"]:
        _check_container(child)
