"""The page about the reproduction: prose by hand, tables put between their markers from records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from recollect.errors import InputError
from recollect.records import atomically

_MARKED = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL)
NOTHING = "Nothing of this is recorded yet.\n"


def filled(page: str, tables: Mapping[str, str]) -> str:
    """The page with each `<!-- table SCALE-NAME -->` ... `<!-- end -->` filled with that table."""

    def put(found: re.Match[str]) -> str:
        return f"{found[1]}\n{tables.get(found['name']) or NOTHING}\n{found[4]}"

    return _MARKED.sub(put, page)


def names_in(page: str) -> list[str]:
    return [found["name"] for found in _MARKED.finditer(page)]


def fill(path: Path, tables: Mapping[str, str]) -> None:
    """Write the tables into a page on disk."""
    try:
        page = path.read_text()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    with atomically(path) as file:
        file.write_text(filled(page, tables))
