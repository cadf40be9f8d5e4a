"""Images on their way into a working set: prepared when there is room, or on a GPU while it is busy with others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch

from recollect.per_image import PerImage

State = TypeVar("State", bound=PerImage)

BLOCKS = 8  # of an eighth of the working set each are prepared ahead


class Entrance(Generic[State]):
    """Hands out images in order; `enter` makes the working state of a slice of them, `ahead` on another thread."""

    def __init__(self, count: int, chunk: int, enter: Callable[[slice], State], *, ahead: bool) -> None:
        self._count, self._chunk, self._enter = count, chunk, enter
        self._asked, self._given = 0, 0
        self._waiting: deque[Future[State]] = deque()
        self._rest: State | None = None  # of a block that was too large for the room
        self._ahead = ThreadPoolExecutor(1) if ahead and count > chunk else None
        self._stream = torch.cuda.current_stream() if self._ahead and torch.cuda.is_available() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._ahead:
            self._ahead.shutdown(cancel_futures=True)

    @property
    def left(self) -> int:
        return self._count - self._given

    def take(self, room: int) -> list[State]:
        """The next images, as many as there is room for, in one or more parts."""
        room = min(room, self.left)
        self._given += room
        if not self._ahead or self._asked == 0:  # the first ones are needed at once
            parts = [self._make(room)] if room else []
        else:
            parts = list(self._from_blocks(room))
        self._prepare()
        return parts

    def _make(self, size: int) -> State:
        self._asked += size
        return self._enter(slice(self._asked - size, self._asked))

    def _from_blocks(self, room: int) -> list[State]:
        parts = []
        while room:
            block = self._rest if self._rest is not None else self._waiting.popleft().result()
            self._rest = block[room:] if len(block) > room else None
            parts.append(block[:room])
            room -= len(parts[-1])
            self._prepare()
        return parts

    def _prepare(self) -> None:
        """Have the next blocks made, in order, by a thread that works while this one waits for the device."""
        size = max(1, self._chunk // BLOCKS)
        while self._ahead and len(self._waiting) < BLOCKS and self._asked < self._count:
            start = self._asked
            self._asked = min(start + size, self._count)
            self._waiting.append(self._ahead.submit(self._make_aside, slice(start, self._asked)))

    def _make_aside(self, some: slice) -> State:
        with torch.no_grad(), torch.cuda.stream(self._stream):  # neither is inherited from the other thread
            return self._enter(some)
