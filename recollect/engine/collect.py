"""Collect finished images where the damaged ones lie: at once on the same device, or from a GPU by another thread."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from recollect.devices.streams import side_streams
from recollect.devices.transfers import to_host
from recollect.per_image import PerImage

Rows = TypeVar("Rows", bound=PerImage)

CPU = torch.device("cpu")
LOT = 256  # rows that leave a GPU together: the device waits while the host copies them


class Collector(Generic[Rows]):
    """Gather rows at the positions of their images, on their device if that is `home`, else on the host.

    They leave a GPU in lots, one at a time and none larger than the working set, so memory stays bounded.
    """

    def __init__(self, count: int, device: torch.device, chunk: int = LOT, home: torch.device = CPU) -> None:
        self._count, self._lot, self._stay = count, min(LOT, chunk), device == home
        self._outcome: Rows | None = None
        self._thread = ThreadPoolExecutor(1) if device.type == "cuda" and not self._stay else None
        self._stream = side_streams(device).results if self._thread else None
        self._waiting: list[tuple[Tensor, Rows]] = []
        self._underway: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread:
            self._thread.shutdown()

    def put(self, index: Tensor, rows: Rows) -> None:
        """Have these rows written at the positions `index`."""
        if self._thread is None:
            self._write(index, rows)
            return
        self._waiting.append((index, rows))
        if sum(len(index) for index, _ in self._waiting) >= self._lot:
            self._send()

    def all(self) -> Rows:
        """Every row, in order."""
        if self._waiting:
            self._send()
        self._wait()
        assert self._outcome is not None
        return self._outcome

    def _send(self) -> None:
        """Send waiting rows, on a stream and a thread of their own."""
        assert self._thread is not None
        assert self._stream is not None
        self._wait()
        index = torch.cat([index for index, _ in self._waiting])
        rows = type(self._waiting[0][1]).join([rows for _, rows in self._waiting])
        self._waiting = []
        self._stream.wait_stream(torch.cuda.current_stream(index.device))
        self._underway = self._thread.submit(self._write_in_thread, index, rows)

    def _wait(self) -> None:
        if self._underway:
            self._underway.result()

    def _write_in_thread(self, index: Tensor, rows: Rows) -> None:
        with torch.no_grad(), torch.cuda.stream(self._stream):  # neither is inherited from the other thread
            positions = to_host(index)
            for start in range(0, len(index), LOT):
                lot = slice(start, start + LOT)
                self._write(positions[lot], rows[lot])

    def _write(self, index: Tensor, rows: Rows) -> None:
        if not self._stay:
            rows = rows.to_host()  # returns when they have arrived, so their memory can be reused
        if self._outcome is None:
            self._outcome = rows.room_for(self._count)
        self._outcome.put(index, rows)
