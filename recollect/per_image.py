"""Frozen dataclasses whose fields hold one row per image: take some images, join batches, move devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Self

import torch
from torch import Tensor

from recollect.devices.transfers import to_device, to_host


@dataclass(frozen=True, eq=False)
class PerImage:
    """Every field that is a tensor, or a PerImage itself, has the images as its first dimension."""

    def __len__(self) -> int:
        return len(next(iter(self._rows().values())))

    def __getitem__(self, index: Any) -> Self:
        """Select images; a single position gives a batch of one."""
        index = [int(index)] if isinstance(index, Integral) else index
        return self._map(lambda rows: rows[index])

    def to(self, device: torch.device | str) -> Self:
        """Move to a device; on a GPU, work that follows in the stream finds the rows there."""
        return self._map_tensors(lambda rows: to_device(rows, device))

    def to_host(self) -> Self:
        """Copy to the host for a short time; from a GPU into pinned memory."""
        return self._map_tensors(to_host)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join batches end to end."""
        if len(parts) == 1:
            return parts[0]
        joined = {name: _join([getattr(p, name) for p in parts]) for name in parts[0]._rows()}
        return replace(parts[0], **joined)

    def room_for(self, count: int) -> Self:
        """Make room for so many images: copies of the first one, to be overwritten, so values are always valid."""
        return self._map_tensors(lambda rows: _room(rows, count))

    def put(self, index: Tensor, images: Self) -> None:
        """Write images at these positions."""
        for name, rows in self._rows().items():
            new = getattr(images, name)
            if isinstance(rows, PerImage):
                rows.put(index, new)
            else:
                rows.index_copy_(0, index, new)

    def record_stream(self, stream: torch.cuda.Stream) -> None:
        """Tell the allocator that another stream uses the memory of these images too."""
        for rows in self._rows().values():
            rows.record_stream(stream)

    def _rows(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: v for name, v in values.items() if isinstance(v, (Tensor, PerImage))}

    def _map_tensors(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Those of fields that are PerImage themselves too."""

        def change_rows(rows: Tensor | PerImage) -> Tensor | PerImage:
            if isinstance(rows, PerImage):
                return rows._map_tensors(change)
            return change(rows)

        return self._map(change_rows)

    def _map(self, change: Callable[[Any], Any]) -> Self:
        return replace(self, **{name: change(rows) for name, rows in self._rows().items()})


def _join(rows: list[Any]) -> Any:
    return torch.cat(rows) if isinstance(rows[0], Tensor) else rows[0].join(rows)


def _room(rows: Tensor, count: int) -> Tensor:
    return rows[:1].expand(count, *rows.shape[1:]).clone(memory_format=torch.contiguous_format)
