"""Run the notebooks of docs/notebooks/ and keep them, with their outputs, in build/notebooks/.

    python docs/notebook_runs.py [NAME ...]

A notebook is run again when its source or the package has changed. Each keeps its seconds, and one that takes more than
two minutes of CPU time ends the command with an error: other programs lengthen the seconds of a clock, but not these.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
SOURCES, RUNS = ROOT / "docs" / "notebooks", ROOT / "build" / "notebooks"
ERRORS_ONLY = ["--log-level=ERROR"]  # the kernel warns that its port, which is local, has no encryption
LONGEST_CELL = 600  # seconds; far above two minutes, since other programs may be running
MOST_CPU_SECONDS = 120  # of a notebook


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
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as recollect does, for notebooks that import torch before it
    began, used = time.monotonic(), cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=LONGEST_CELL, resources=resources, extra_arguments=ERRORS_ONLY).execute()
    for output in outputs(notebook):
        if "text/html" in output.get("data", {}):
            output.data.pop("text/plain", None)  # the same once more, as the long repr of an object
    notebook.metadata["recollect"] = {
        "key": key_of(source), "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(cpu_seconds() - used, 1),
    }  # fmt: skip
    return notebook


def cpu_seconds() -> float:
    """Add up the CPU time of programs that this process started and that have ended, as kernels do."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    """List what the cells of a notebook put out."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def kept(name: str, source: Path, folder: Path = RUNS) -> NotebookNode | None:
    """Read an earlier run of a notebook; None if there is none, or if it is of another source or package."""
    path = folder / f"{name}.ipynb"
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    made = notebook.metadata.get("recollect", {})
    return notebook if made.get("key") == key_of(source) and "cpu_seconds" in made else None


def keep(name: str, notebook: NotebookNode, folder: Path = RUNS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")


def key_of(source: Path) -> str:
    """Hash all that decides the outputs of a notebook but the libraries it uses."""
    files = [source, *sorted((ROOT / "recollect").rglob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def check_cpu_time(notebooks: Mapping[str, NotebookNode]) -> None:
    """End the command if notebooks took more CPU time than a reader is told."""
    used = {name: notebook.metadata["recollect"]["cpu_seconds"] for name, notebook in notebooks.items()}
    slow = {name: seconds for name, seconds in used.items() if seconds > MOST_CPU_SECONDS}
    if slow:
        listed = ", ".join(f"{name} ({seconds:.0f})" for name, seconds in slow.items())
        sys.exit(f"A notebook may take {MOST_CPU_SECONDS} seconds of CPU time; these took more: {listed}.")


def main(*names: str) -> None:
    notebooks = {}
    for name, source in sources().items():
        if names and name not in names:
            continue
        notebook = kept(name, source)
        if notebook is None:
            notebook = run(source)
            keep(name, notebook)
        notebooks[name] = notebook
        made = notebook.metadata["recollect"]
        sys.stdout.write(f"{name}: {made['seconds']:.0f} s, {made['cpu_seconds']:.0f} s of CPU time\n")
    check_cpu_time(notebooks)


if __name__ == "__main__":
    main(*sys.argv[1:])
