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

from recollect.errors import InputError
from recollect.files.pickles import check_work
from recollect.models.refusals import Refused
from recollect.models.safety.torchscript_grammar import Definitions, check_type_text

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
OPEN = object()  # a list or dictionary that is filled next
DEEPEST = 500  # containers inside containers; torch follows each level on its call stack


@dataclass(frozen=True)
class Name:
    """A class or function that a pickle names."""

    name: str


@dataclass(frozen=True)
class Held:
    """A tuple with its parts; or a list, dictionary, object or tensor, whose parts were checked on the way."""

    parts: tuple[Any, ...]
    depth: int
    made: str = ""  # the class of an object
    has_objects: bool = False  # among the parts, at any depth


@dataclass(frozen=True)
class Storage:
    """The numbers that a tensor is a view of."""

    count: int


def check_values(content: bytes, sizes: Mapping[str, int], definitions: Definitions) -> None:
    """Refuse a pickle that does more than fill fields; `sizes` are the bytes of the tensors beside it."""
    steps = Steps(sizes, definitions)
    try:
        check_work(content, "Its list of values")
        for count, (operation, argument, _) in enumerate(pickletools.genops(content)):
            steps.follow(operation.name, argument, count)
    except InputError:
        raise
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
            "TUPLE": lambda _: self._hold(self._since_mark()),
            "EMPTY_TUPLE": lambda _: self._hold([]),
            "LIST": lambda _: self._hold(self._since_mark()),
            "DICT": lambda _: self._hold(self._since_mark()),
            "APPENDS": lambda _: self._close(self._since_mark()),
            "SETITEMS": lambda _: self._close(self._since_mark()),
            "NEWOBJ": self._new,
            "REDUCE": self._build,
            "BUILD": self._build,
            "BINPERSID": self._storage,
            "BINGET": lambda key: self.stack.append(self.memo[key]),
            "LONG_BINGET": lambda key: self.stack.append(self.memo[key]),
            "PROTO": self._protocol,
            "STOP": self._end,
        }

    def follow(self, operation: str, argument: Any, count: int) -> None:
        """Follow one step."""
        if operation in LITERALS:
            self.stack.append(self._literal(operation, argument))
        elif operation in EMPTY_CONTAINERS:
            self.stack.append(OPEN)
        elif operation in TUPLES:
            self._hold(self._last(TUPLES[operation]))
        elif operation in FILLS:
            self._close(self._last(FILLS[operation]))
        elif operation in ("BINPUT", "LONG_BINPUT"):
            self._remember(argument, count)
        elif operation in self.actions:
            self.actions[operation](argument)
        else:
            raise Refused(f"its values hold a {operation}, which torch does not write")

    def _literal(self, operation: str, argument: Any) -> Any:
        if operation == "BINUNICODE":
            if not argument.replace("\n", "").isprintable():
                raise Refused(f"its values hold the text {argument[:60]!a}, which has control characters")
            self.definitions.longest_text = max(self.definitions.longest_text, len(argument))
        return {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}.get(operation, argument)

    def _end(self, _: Any) -> None:
        if isinstance(self.stack[-1], Held) and self.stack[-1].has_objects:
            raise Refused("its values hold an object outside of a field that declares its class")

    def _protocol(self, number: int) -> None:
        if number != 2:
            raise ValueError

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

    def _hold(self, parts: list[Any], made: str = "") -> None:
        held = [part for part in parts if isinstance(part, Held)]
        depth = 1 + max((part.depth for part in held), default=0)
        if depth > DEEPEST:
            raise Refused("its values are nested too deeply")
        has_objects = any(part.made or part.has_objects for part in held) and not made
        self.stack.append(Held(tuple(parts), depth, made, has_objects))

    def _close(self, parts: list[Any]) -> None:
        """Fill the container on top, once: one that is filled again could hold itself."""
        if self.stack.pop() is not OPEN:
            raise TypeError
        self._hold(parts)

    def _remember(self, key: int, count: int) -> None:
        if key > count:  # torch would make room for all numbers before this one
            raise Refused("its values are numbered beyond their count")
        if self.stack[-1] is OPEN:
            raise TypeError
        self.memo[key] = self.stack[-1]

    def _name(self, name: str) -> None:
        if name not in BUILDERS and not STORAGE.fullmatch(name) and not self._is_class(name):
            raise Refused(f"its values ask for {name.replace(' ', '.')[:80]!r}")
        self.stack.append(Name(name))

    def _is_class(self, name: str) -> bool:
        return name.count(" ") == 1 and name.replace(" ", ".") in self.definitions.names

    def _new(self, _: Any) -> None:
        made, arguments = self._last(2)
        if not isinstance(made, Name) or not self._is_class(made.name) or arguments.parts != ():
            raise TypeError
        self.stack.append(made)

    def _build(self, _: Any) -> None:
        builder, values = self._last(2)
        if not isinstance(builder, Name) or STORAGE.fullmatch(builder.name):
            raise TypeError
        if self._is_class(builder.name):
            self._object(builder.name.replace(" ", "."), values)
            return
        if builder.name == TENSOR:
            _check_tensor(*values.parts[:4])
        elif builder.name == TYPED:
            check_type_text(values.parts[1], self.definitions)
        elif builder.name == DEVICE and not DEVICE_NAME.fullmatch(values.parts[0]):
            raise Refused(f"its values name the device {values.parts[0][:60]!r}")
        self._hold([values])

    def _object(self, made: str, values: Held) -> None:
        """Hold an object; each object in a field of it must be of the class that the field declares.

        torch reads a field at the offset that the declared class gives it, and checks neither class nor offset.
        """
        for index, value in enumerate(values.parts):
            if not isinstance(value, Held) or not (value.made or value.has_objects):
                continue
            name = str(values.parts[index - 1]) if index % 2 else ""  # names and values take turns
            if value.has_objects or not self.definitions.holds_class(made, name, value.made):
                raise Refused(f"its field {name[:60]!r} holds an object of a class that it does not declare")
        self._hold([values], made)

    def _storage(self, _: Any) -> None:
        word, kind, key, device, count = self._last(1)[0].parts
        if word != "storage" or not DEVICE_NAME.fullmatch(device) or type(count) is not int or count < 0:
            raise ValueError
        width = BYTES[STORAGE.fullmatch(kind.name)[1]]  # type: ignore[index]  # a TypeError is a refusal
        if count and self.sizes.get(key, 0) < count * width:
            raise Refused(f"its tensor {key[:60]!r} claims more numbers than the file holds")
        self.stack.append(Storage(count))


def _check_tensor(storage: Storage, offset: int, shape: Held, strides: Held) -> None:
    """Refuse a tensor that reaches beyond its storage."""
    numbers = [offset, *shape.parts, *strides.parts]
    if not isinstance(storage, Storage) or any(type(number) is not int for number in numbers):
        raise TypeError
    steps = zip(shape.parts, strides.parts, strict=True)
    last = offset + sum((length - 1) * stride for length, stride in steps)
    if min(numbers) < 0 or (0 not in shape.parts and last >= storage.count):
        raise Refused("one of its tensors reaches beyond the numbers that it was saved with")
