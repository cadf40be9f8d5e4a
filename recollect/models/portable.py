"""A model on its way to another machine: its files and how they are opened, or the object itself."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

from torch import nn

from recollect.models.open_model import Model, open_model


@dataclass(frozen=True, eq=False)
class Carried:
    """What open_model is to be called with, where it arrives; opened once."""

    what: Model
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)  # by the argument they belong to, and name

    @classmethod
    def of(cls, what: Model, options: Mapping[str, Any]) -> Carried:
        """A file travels with its content; package.module:factory must be there on the other machine."""
        given = {"what": what, "weights": options.get("weights")}
        paths = {name: Path(path).expanduser() for name, path in given.items() if isinstance(path, str | Path)}
        return cls(what, options, {name: _content(path) for name, path in paths.items() if path.is_file()})

    @cached_property
    def opened(self) -> nn.Module:
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            arguments = {"what": self.what, **self.options}
            for argument, content in self.files.items():
                place = Path(folder) / argument
                place.mkdir()
                for name, data in content.items():
                    (place / name).write_bytes(data)
                arguments[argument] = place / Path(str(arguments[argument])).name
            return open_model(**arguments)


def _content(path: Path) -> dict[str, bytes]:
    """A file, and the weights that an ONNX model may keep beside it, in m.onnx.data or m.onnx_data."""
    beside = path.parent.glob(f"{escape(path.name)}[._]*") if path.suffix == ".onnx" else ()
    return {part.name: part.read_bytes() for part in (path, *beside) if part.is_file()}
