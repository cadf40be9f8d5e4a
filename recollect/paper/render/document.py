"""The page about the reproduction: prose by hand, tables between their markers from records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch

from recollect.errors import InputError
from recollect.paper import RESULTS, WORK
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.render.figures import table_of
from recollect.paper.render.summary import summary
from recollect.paper.scales import FULL, SMALL
from recollect.paper.store import Store
from recollect.paper.workspace import Workspace
from recollect.records import atomically

_MARKED = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL)
NOTHING = "Nothing of this is recorded yet.\n"


def page_tables(results: Path = RESULTS) -> dict[str, str]:
    """Make every table of both scales from the records, by its name in the page."""
    tables: dict[str, str] = {}
    for scale in (SMALL, FULL):
        workspace = Workspace(Store(results / scale.name), WORK / scale.name, None, torch.device("cpu"))
        for name, experiment in EXPERIMENTS.items():
            tables[f"{scale.name}-{name}"] = table_of(experiment, scale, workspace)
        tables[f"{scale.name}-summary"] = summary(scale, workspace.store)
    return tables


def fill_tables(page: str, tables: Mapping[str, str]) -> str:
    """Put each table between its markers, `<!-- table SCALE-NAME -->` and `<!-- end -->`."""

    def put(marked: re.Match[str]) -> str:
        return f"{marked[1]}\n{tables.get(marked['name']) or NOTHING}\n{marked[4]}"

    return _MARKED.sub(put, page)


def update_page(path: Path, tables: Mapping[str, str]) -> None:
    """Write the tables into a page on disk."""
    try:
        page = path.read_text()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    with atomically(path) as file:
        file.write_text(fill_tables(page, tables))
