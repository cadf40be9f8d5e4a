"""Run the notebooks of docs/notebooks/ and keep them, with their outputs, in build/notebooks/.

    python docs/notebook_runs.py [NAME ...]

A notebook is run again when its source or the package has changed.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
SOURCES, RUNS = ROOT / "docs" / "notebooks", ROOT / "build" / "notebooks"
ERRORS_ONLY = ["--log-level=ERROR"]  # the kernel warns that its port, which is local, has no encryption
LONGEST_CELL = 600  # seconds; far above two minutes, since other programs may be running


def sources() -> dict[str, Path]:
    """List the notebooks by name, in the order of the numbers that their files begin with."""
    return {path.stem.partition("-")[2]: path for path in sorted(SOURCES.glob("*.py"))}


def read_source(source: Path) -> NotebookNode:
    """Read a notebook without outputs."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3"}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def run(source: Path) -> NotebookNode:
    """Execute a notebook in an empty folder; a cell that fails raises its error."""
    notebook = read_source(source)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=LONGEST_CELL, resources=resources, extra_arguments=ERRORS_ONLY).execute()
    for output in outputs(notebook):
        if "text/html" in output.get("data", {}):
            output.data.pop("text/plain", None)  # the same once more, as the long repr of an object
    notebook.metadata["recollect"] = {"key": key_of(source), "seconds": round(time.monotonic() - began, 1)}
    return notebook


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    """List what the cells of a notebook put out."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def kept(name: str, source: Path, folder: Path = RUNS) -> NotebookNode | None:
    """Read an earlier run of a notebook; None if there is none, or if it is of another source or package."""
    path = folder / f"{name}.ipynb"
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    return notebook if notebook.metadata.get("recollect", {}).get("key") == key_of(source) else None


def keep(name: str, notebook: NotebookNode, folder: Path = RUNS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")


def key_of(source: Path) -> str:
    """Hash all that decides the outputs of a notebook but the libraries it uses."""
    files = [source, *sorted((ROOT / "recollect").rglob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def main(*names: str) -> None:
    for name, source in sources().items():
        if names and name not in names:
            continue
        notebook = kept(name, source)
        if notebook is None:
            notebook = run(source)
            keep(name, notebook)
        sys.stdout.write(f"{name}: {notebook.metadata['recollect']['seconds']:.0f} s\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
