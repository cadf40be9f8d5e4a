"""The pickled values of a TorchScript archive, followed step by step before torch's own reader sees them.

torch reads these pickles with a small reader of its own. That reader can build objects of C++ classes, connect to
other processes, and make a tensor larger than its bytes, which shows other memory. Nothing is built here: the steps are
followed with stand-ins, each name is held against a closed list, and each tensor against the bytes that it has.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recollect.models.refusals import Refused
from recollect.models.torchscript_grammar import Definitions, check_type_text

BYTES = {"Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1, "Byte": 1}
BYTES |= {"Bool": 1, "ComplexFloat": 8, "ComplexDouble": 16}
STORAGE = re.compile(rf"torch ({'|'.join(BYTES)})Storage")
TENSOR, TYPED, DEVICE = "torch._utils _rebuild_tensor_v2", "torch.jit._pickle restore_type_tag", "torch device"
BUILDERS = {TENSOR, TYPED, DEVICE, "collections OrderedDict", "builtins complex"}
BUILDERS |= {f"torch.jit._pickle build_{kind}list" for kind in ("int", "tensor", "double", "bool")}
DEVICE_NAME = re.compile(r"[a-z]+(:\d+)?", re.ASCII)
LITERALS = {"NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"}
EMPTY_CONTAINERS = {"EMPTY_LIST", "EMPTY_DICT"}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
FILLS = {"APPEND": 1, "SETITEM": 2}  # and how many values each takes
OPAQUE = object()  # a container, an object or a tensor; what it holds was checked on the way


@dataclass(frozen=True)
class Name:
    """A class or function that a pickle names."""

    name: str


@dataclass(frozen=True)
class Storage:
    """The numbers that a tensor is a view of."""

    count: int


def check_values(content: bytes, sizes: Mapping[str, int], definitions: Definitions) -> None:
    """Refuse a pickle that does more than fill fields; `sizes` are the bytes of the tensors beside it."""
    steps = Steps(sizes, definitions)
    try:
        for count, (operation, argument, _) in enumerate(pickletools.genops(content)):
            steps.follow(operation.name, argument, count)
    except (ValueError, IndexError, TypeError, KeyError, AttributeError):
        raise Refused("its values are not stored in the order that torch writes") from None


class Steps:
    """A stack of stand-ins that follows a pickle."""

    def __init__(self, sizes: Mapping[str, int], definitions: Definitions) -> None:
        self.sizes = sizes
        self.definitions = definitions
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks below the open marks
        self.memo: dict[int, Any] = {}
        self.actions: dict[str, Callable[[Any], None]] = {
            "GLOBAL": self._name,
            "MARK": self._mark,
            "TUPLE": self._tuple,
            "EMPTY_TUPLE": lambda _: self.stack.append(()),
            "LIST": self._container,
            "DICT": self._container,
            "APPENDS": self._fill,
            "SETITEMS": self._fill,
            "NEWOBJ": self._new,
            "REDUCE": self._build,
            "BUILD": self._build,
            "BINPERSID": self._storage,
            "BINGET": lambda key: self.stack.append(self.memo[key]),
            "LONG_BINGET": lambda key: self.stack.append(self.memo[key]),
            "PROTO": lambda _: None,
            "STOP": lambda _: None,
        }

    def follow(self, operation: str, argument: Any, count: int) -> None:
        """Follow one step."""
        if operation in LITERALS:
            self.stack.append(_literal(operation, argument))
        elif operation in EMPTY_CONTAINERS:
            self.stack.append(OPAQUE)
        elif operation in TUPLES:
            self.stack.append(tuple(self._last(TUPLES[operation])))
        elif operation in FILLS:
            self._last(FILLS[operation])
            self._require_container()
        elif operation in ("BINPUT", "LONG_BINPUT"):
            if argument > count:  # torch would make room for all numbers before this one
                raise Refused("its values are numbered beyond their count")
            self.memo[argument] = self.stack[-1]
        elif operation in self.actions:
            self.actions[operation](argument)
        else:
            raise Refused(f"its values hold a {operation}, which torch does not write")

    def _last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise IndexError
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def _mark(self, _: Any) -> None:
        self.below.append(self.stack)
        self.stack = []

    def _since_mark(self) -> list[Any]:
        values, self.stack = self.stack, self.below.pop()
        return values

    def _tuple(self, _: Any) -> None:
        values = tuple(self._since_mark())
        self.stack.append(values)

    def _require_container(self) -> None:
        if self.stack[-1] is not OPAQUE:
            raise TypeError

    def _container(self, _: Any) -> None:
        self._since_mark()
        self.stack.append(OPAQUE)

    def _fill(self, _: Any) -> None:
        self._since_mark()
        self._require_container()

    def _name(self, name: str) -> None:
        if name not in BUILDERS and not STORAGE.fullmatch(name) and not self._is_class(name):
            raise Refused(f"its values ask for {name.replace(' ', '.')[:80]!r}")
        self.stack.append(Name(name))

    def _is_class(self, name: str) -> bool:
        return name.count(" ") == 1 and name.replace(" ", ".") in self.definitions.names

    def _new(self, _: Any) -> None:
        made, arguments = self._last(2)
        if not isinstance(made, Name) or not self._is_class(made.name) or arguments != ():
            raise TypeError
        self.stack.append(made)

    def _build(self, _: Any) -> None:
        builder, values = self._last(2)
        if not isinstance(builder, Name) or STORAGE.fullmatch(builder.name):
            raise TypeError
        if builder.name == TENSOR:
            _check_tensor(*values[:4])
        elif builder.name == TYPED:
            check_type_text(values[1], self.definitions)
        elif builder.name == DEVICE and not DEVICE_NAME.fullmatch(values[0]):
            raise Refused(f"its values name the device {values[0][:60]!r}")
        self.stack.append(OPAQUE)

    def _storage(self, _: Any) -> None:
        word, kind, key, device, count = self._last(1)[0]
        if word != "storage" or not DEVICE_NAME.fullmatch(device) or type(count) is not int or count < 0:
            raise ValueError
        width = BYTES[STORAGE.fullmatch(kind.name)[1]]  # type: ignore[index]  # a TypeError is a refusal
        if count and self.sizes.get(key, 0) < count * width:
            raise Refused(f"its tensor {key[:60]!r} claims more numbers than the file holds")
        self.stack.append(Storage(count))


def _literal(operation: str, argument: Any) -> Any:
    if operation == "BINUNICODE" and not argument.replace("\n", "").isprintable():
        raise Refused(f"its values hold the text {argument[:60]!a}, which has control characters")
    return {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}.get(operation, argument)


def _check_tensor(storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Refuse a tensor that reaches beyond its storage."""
    numbers = [offset, *shape, *strides]
    if not isinstance(storage, Storage) or len(shape) != len(strides) or any(type(n) is not int for n in numbers):
        raise TypeError
    last = offset + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    if min(numbers) < 0 or (0 not in shape and last >= storage.count):
        raise Refused("one of its tensors reaches beyond the numbers that it was saved with")
