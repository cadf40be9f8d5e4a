"""A model that can be sent to another machine: its files and how they are opened, or the object itself."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from recollect.models.formats import ModelReference, find_format
from recollect.models.opening import Model, open_model


@dataclass(frozen=True, eq=False)
class PortableModel:
    """The arguments of open_model, with the content of the files they name; opened once, where it arrives."""

    what: Model
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)  # by the argument they belong to, and name

    @classmethod
    def of(cls, what: Model, options: Mapping[str, Any]) -> PortableModel:
        """Take a file or a folder with its content; package.module:factory must be importable on the other machine."""
        given = {"what": what, "weights": options.get("weights")}
        paths = {name: Path(path).expanduser() for name, path in given.items() if isinstance(path, str | Path)}
        contents = {name: _content(name, path) for name, path in paths.items() if path.exists()}
        return cls(what, options, {name: content for name, content in contents.items() if content})

    @cached_property
    def opened(self) -> nn.Module:
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            arguments = {"what": self.what, **self.options}
            for argument, content in self.files.items():
                copies = Path(folder) / argument
                copies.mkdir()
                for name, data in content.items():
                    (copies / name).write_bytes(data)
                name = Path(str(arguments[argument])).name
                arguments[argument] = copies / name if name in content else copies
            return open_model(**arguments)


def _content(argument: str, path: Path) -> dict[str, bytes]:
    """Read a file, and those that its format keeps beside it or, for a folder, in it."""
    paths = [path]
    if argument == "what":
        paths += find_format(ModelReference(str(path))).files_beside(path)
    return {part.name: part.read_bytes() for part in paths if part.is_file()}
