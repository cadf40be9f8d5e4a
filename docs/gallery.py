"""A hook of the site: a page for each notebook of docs/notebooks/, and one that shows them all.

The pages have the outputs of `notebook_runs.py`, which `make docs` runs first. A notebook that was not run is shown
without outputs, so that the site can be built, and its links checked, in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import notebook_runs
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter
from nbformat import NotebookNode

INTRODUCTION = """# Gallery

This page is for people who want to see an audit before they run one. Each notebook trains a small model, damages images
and tries to recover them. It needs no download and takes less than two minutes on two CPU cores.
"""
NOT_RUN = "*The outputs are missing here: this copy of the site was built without running the notebook.*"
RAN = "*The outputs are of a run that took {seconds:.0f} seconds of CPU time.*"


@dataclass(frozen=True)
class GalleryPage:
    """One notebook as Markdown, with its pictures by file name."""

    name: str
    notebook: NotebookNode
    markdown: str
    pictures: dict[str, bytes]

    @classmethod
    def of(cls, name: str, source: Path, runs: Path = notebook_runs.RUNS) -> GalleryPage:
        notebook, how = notebook_runs.kept(name, source, runs), NOT_RUN
        if notebook is None:
            notebook = notebook_runs.read_source(source)
        else:
            how = RAN.format(seconds=notebook.metadata["recollect"]["cpu_seconds"])
        body, resources = MarkdownExporter().from_notebook_node(notebook, {"unique_key": name, "output_files_dir": ""})
        title, _, rest = body.partition("\n")
        alt = f"![{title.lstrip('# ')}]("
        head = [title, f"\n{how}\n", f"\n[Download this notebook]({name}.ipynb)\n"]
        markdown = "".join(head) + rest.replace("![png](", alt)
        return cls(name, notebook, markdown, {Path(path).name: data for path, data in resources["outputs"].items()})

    @property
    def title(self) -> str:
        return self._opening[0].lstrip("# ")

    @property
    def summary(self) -> str:
        """The first paragraph below the title."""
        return " ".join(self._opening[1].split())

    @property
    def _opening(self) -> list[str]:
        return re.split(r"\n\s*\n", self.notebook.cells[0].source)

    def files(self) -> Iterator[tuple[str, str | bytes]]:
        yield f"gallery/{self.name}.md", self.markdown
        yield f"gallery/{self.name}.ipynb", nbformat.writes(self.notebook)
        for picture, data in self.pictures.items():
            yield f"gallery/{picture}", data

    def card(self) -> str:
        """Write the notebook's entry in the index: a picture if it was run, its title and its first paragraph."""
        picture = f"[![{self.title}]({next(iter(self.pictures))})]({self.name}.md)\n\n" if self.pictures else ""
        return f"## [{self.title}]({self.name}.md)\n\n{self.summary}\n\n{picture}"


def on_files(files: Files, *, config: Any) -> Files:
    pages = [GalleryPage.of(name, source) for name, source in notebook_runs.sources().items()]
    index = INTRODUCTION + "\n" + "".join(page.card() for page in pages)
    written = [("gallery/index.md", index), *(file for page in pages for file in page.files())]
    for path, content in written:
        files.append(File.generated(config, path, content=content))
    return files
