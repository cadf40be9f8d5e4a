"""The record of a split, which `recollect data split --out` writes: train and control images by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import InputError
from recollect.sources.address import PARTS, Address
from recollect.sources.base import Catalogue, Progress, Source


def list_images(path: Path, _address: Address) -> Catalogue:
    """List the images of both parts, each of which is read from its own source and checked by its hash."""
    from recollect.records import read_json
    from recollect.sources.splits import Recorded

    record: Mapping[str, Any] = read_json(path)
    try:
        recorded = [Recorded.of(record, part, folder=path.parent) for part in PARTS]
    except InputError as error:
        raise InputError(f"{path}: {error}") from None

    def read(positions: np.ndarray, progress: Progress) -> np.ndarray:
        ends = np.cumsum([len(part.positions) for part in recorded])
        number = int(np.searchsorted(ends, positions[0], side="right"))  # a draw is of one part
        return recorded[number].read(positions - (ends[number] - len(recorded[number].positions)), progress)

    return Catalogue(
        ids=[name for part in recorded for name in part.ids],
        read=read,
        parts=[part for part, one in zip(PARTS, recorded, strict=True) for _ in one.ids],
        sha256={part: record[part]["sha256"] for part in PARTS},
        columns=recorded[0].catalogue.columns,
        in_place=all(part.catalogue.in_place for part in recorded),
        may_grow=any(part.catalogue.may_grow for part in recorded),
    )


SOURCE = Source(
    name="split",
    summary="the record of a train and a control set; an audit takes both from it",
    example="split:split.json",
    open=list_images,
    path="a file that recollect data split --out wrote",
    suffixes=(".json",),
    holds_control=True,
    order=80,
)
