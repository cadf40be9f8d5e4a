"""Prepare the next images for the working set: when there is room, or ahead of time while a GPU is busy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch

from recollect.devices.streams import side_streams
from recollect.per_image import PerImage

State = TypeVar("State", bound=PerImage)

CPU = torch.device("cpu")
BLOCKS = 8  # of an eighth of the working set each are prepared ahead


class Prefetcher(Generic[State]):
    """Hand out images in order; `begin` makes the state of a slice of them.

    With `ahead`, another thread prepares them, and on a GPU another stream: in the stream of the steps, a copy would
    wait for every step that is queued there.
    """

    def __init__(
        self, count: int, chunk: int, begin: Callable[[slice], State], *, ahead: bool, device: torch.device = CPU
    ) -> None:
        self._count, self._chunk, self._block, self._begin = count, chunk, max(1, chunk // BLOCKS), begin
        self._asked, self._given = 0, 0
        self._waiting: deque[Future[Prepared[State]]] = deque()
        self._rest: State | None = None  # of a block that was too large for the room
        self._ahead = ThreadPoolExecutor(1) if ahead and count > chunk else None
        self._stream = side_streams(device).inputs if self._ahead and device.type == "cuda" else None
        if self._stream:
            self._stream.wait_stream(torch.cuda.current_stream(device))  # where the images may still be being made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._ahead:
            self._ahead.shutdown(cancel_futures=True)

    @property
    def left(self) -> int:
        return self._count - self._given

    def take(self, room: int) -> list[State]:
        """Hand out the next images, as many as there is room for, in one or more parts.

        With prefetching the first part is one block, and each later one doubles the total: the device starts early.
        """
        room = min(room, self.left)
        if self._ahead:
            room = min(room, max(self._block, self._given))
        self._given += room
        if not room:
            return []
        if self._ahead:
            return self._from_blocks(room)
        return [self._begin(slice(self._given - room, self._given))]

    def _from_blocks(self, room: int) -> list[State]:
        parts = []
        self._prepare()
        while room:
            block, self._rest = self._next_block(), None
            if len(block) > room:
                self._rest = block[room:]
            parts.append(block[:room])
            room -= len(parts[-1])
            self._prepare()
        return parts

    def _next_block(self) -> State:
        if self._rest is not None:
            return self._rest
        return self._arrived(self._waiting.popleft().result())

    def _prepare(self) -> None:
        """Have the thread make the next blocks, in order, while this one waits for the device."""
        while self._ahead and self._asked < min(self._count, self._given + self._chunk):
            start = self._asked
            self._asked = min(start + self._block, self._count)
            self._waiting.append(self._ahead.submit(self._make_in_thread, slice(start, self._asked)))

    def _make_in_thread(self, rows: slice) -> Prepared[State]:
        with torch.no_grad(), torch.cuda.stream(self._stream):  # neither is inherited from the other thread
            state = self._begin(rows)
            ready = self._stream.record_event() if self._stream else None
            return Prepared(state, ready)

    def _arrived(self, block: Prepared[State]) -> State:
        """Order the block before the steps' stream, and keep its memory until that stream has used it."""
        if self._stream and block.ready:
            work = torch.cuda.current_stream(self._stream.device)
            work.wait_event(block.ready)
            block.state.record_stream(work)
        return block.state


@dataclass(frozen=True)
class Prepared(Generic[State]):
    """A block of images, and the event after which a GPU has it."""

    state: State
    ready: torch.cuda.Event | None
