"""How much work a pickle is, found out before anything of it is built.

A pickle can name one of its parts many times. A few hundred bytes can so describe a tuple of tuples that takes years to
walk, to hash or to print. Here the steps of a pickle are counted, and a part that is used again counts again in full.
Nothing is built, imported or called.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

from recollect.files.limits import PICKLE_STEPS

REMEMBERS = {"PUT", "BINPUT", "LONG_BINPUT"}
RECALLS = {"GET", "BINGET", "LONG_BINGET"}
FILLS = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}


def check_work(data: bytes, name: str) -> None:
    """Refuse a pickle of more steps than the limit; a broken one raises ValueError or IndexError."""
    most, work = PICKLE_STEPS.value, Work()
    for operation, argument, _ in pickletools.genops(data):
        work.follow(operation, argument)
        if work.steps > most:
            PICKLE_STEPS.check(work.steps, f"{name} is a pickle of more than {most:,} steps.")


@dataclass
class Part:
    """A value that a pickle would build: how many steps it is worth."""

    size: int


class Work:
    """Follow a pickle with a stack of sizes in place of values.

    The sizes of tuples are exact. A list or dictionary counts as what it held when it was used; that suffices, since
    neither is ever hashed, and readers do not walk into what they hold.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.stack: list[Part] = []
        self.marks: list[int] = []  # how high the stack was at each open mark
        self.memo: dict[int, Part] = {}

    def follow(self, operation: pickletools.OpcodeInfo, argument: Any) -> None:
        """Follow one step."""
        self.steps += 1
        if operation.name == "MARK":
            self.marks.append(len(self.stack))
        elif operation.name in REMEMBERS:
            self.memo[int(argument)] = self.stack[-1]
        elif operation.name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif operation.name in RECALLS:
            self._use(self.memo.get(int(argument), Part(1)))
        elif operation.name == "DUP":
            self._use(self.stack[-1])
        elif operation.name == "POP" and self.marks[-1:] == [len(self.stack)]:
            self.marks.pop()
        else:
            self._replace(operation)

    def _use(self, part: Part) -> None:
        self.steps += part.size
        self.stack.append(part)

    def _replace(self, operation: pickletools.OpcodeInfo) -> None:
        """Take what an operation takes from the stack, and push the result."""
        before = operation.stack_before
        start = len(self.stack) - len(before)
        if pickletools.markobject in before:
            start = self.marks.pop() - before.index(pickletools.markobject)
        if start < 0:
            raise IndexError("the pickle takes from an empty stack")
        taken = self.stack[start:]
        del self.stack[start:]
        size = 1 + sum(part.size for part in taken)
        if operation.name in FILLS and taken:
            taken[0].size = size  # the same object, wherever else it is remembered
            self.stack.append(taken[0])
        else:
            self.stack += [Part(size)] * len(operation.stack_after)
