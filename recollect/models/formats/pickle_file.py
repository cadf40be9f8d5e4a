"""Bare pickles, which are recognised to be refused: reading one runs the code that it names."""

from __future__ import annotations

from typing import NoReturn

from recollect.models.formats.base import ModelFormat, ModelReference
from recollect.models.refusals import needs_pickle

SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def is_pickle(model: ModelReference) -> bool:
    """Return whether a file starts as pickles do, or is called like one and is no archive."""
    if not model.path.is_file() or model.start[:2] == b"PK":
        return False
    return model.start[:1] == b"\x80" or model.suffix in SUFFIXES


def refuse_pickle(model: ModelReference) -> NoReturn:
    raise needs_pickle(model.path, "it is a bare pickle, was saved by torch before 1.6, or is no model at all")


FORMAT = ModelFormat(
    name="pickle",
    summary="a bare pickle, which is refused with a way to convert it",
    example="model.pkl",
    recognises=is_pickle,
    open=refuse_pickle,
    read_weights=refuse_pickle,
    order=90,
    listed=False,
)
