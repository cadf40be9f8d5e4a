"""The source of a model: the bytes of its files, or the code of its factory and of what that imports beside it."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.models.formats import ModelReference, find_format
from recollect.models.formats.factory import is_factory

_INSTALLED = {"site-packages", "dist-packages"}


def source_hash(what: Any) -> str | None:
    """Hash the files that a model is opened from; None for an object that was passed in.

    A factory has to be imported before: `open_model` does that. A file's own name does not count.
    """
    if not isinstance(what, str | Path):
        return None
    model = ModelReference(str(what))
    if is_factory(model):
        return _hash(factory_files(model.text.partition(":")[0]))
    paths = sorted([model.path, *find_format(model).files_beside(model.path)])
    return _hash({str(number): path for number, path in enumerate(paths) if path.is_file()})


def factory_files(module_name: str) -> dict[str, Path]:
    """Find the source files of an imported module and of the modules beside it that it imports, by module name.

    Imports are read from the source, not from `sys.modules`: what else a process has loaded must not count.
    """
    file = getattr(sys.modules.get(module_name), "__file__", None)
    if file is None:
        return {}
    root = _import_root(module_name, Path(file))
    top, is_installed = module_name.partition(".")[0], bool(_INSTALLED & set(root.parts))
    files: dict[str, Path] = {}
    pending = [module_name]
    while pending:
        name = pending.pop()
        path = _locate(root, name)
        beside = name.partition(".")[0] == top or not is_installed  # an installed package is beside all others
        if path is None or name in files or not beside:
            continue
        files[name] = path
        pending += [*_parents(name), *_imports(path, name)]
    return files or {module_name: Path(file)}  # a compiled module has no source


def _hash(files: dict[str, Path]) -> str | None:
    if not files:
        return None
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _import_root(module_name: str, file: Path) -> Path:
    """Return the folder from which the first part of a module's name was imported."""
    depth = module_name.count(".") + (file.name == "__init__.py")
    return file.absolute().parents[depth]


def _locate(root: Path, name: str) -> Path | None:
    *folders, last = name.split(".")
    for path in (root.joinpath(*folders, last, "__init__.py"), root.joinpath(*folders, f"{last}.py")):
        if path.is_file():
            return path
    return None


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imports(path: Path, name: str) -> Iterator[str]:
    """Yield every name that a file imports, at its top or inside a function; some may be no modules."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*inside, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)
