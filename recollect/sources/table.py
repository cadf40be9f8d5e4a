"""Tables of numbers in text files: .csv and .tsv, a row an item."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.arrangement import arrange
from recollect.errors import InputError, first_line
from recollect.limits import IMAGES, SET_BYTES
from recollect.sources import stated_range
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source
from recollect.sources.stated_range import ValueRange, read_range

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv")
SEPARATORS = (",", ";", "\t")


def list_images(path: Path, address: Address) -> Catalogue:
    """List the rows of a table; ids are their positions, the first below the header is 0."""
    kind = address.parameters.get("as", "rows")
    if kind not in ("rows", "signals"):
        raise InputError(f"as={kind} is unknown; a table holds rows or signals.")
    table = _chosen(_load(path), path, address)
    unit = read_range(address, lambda other: _values(_chosen(_load(other), other, address), other, kind))
    values = _values(table, path, kind)
    IMAGES.check(len(values), f"{path} holds {len(values):,} rows.")
    return Catalogue(
        ids=[str(position) for position in range(len(values))],
        read=partial(_read, values, unit, path),
        columns=list(table.columns) if kind == "rows" else (),
    )


def _load(path: Path) -> pd.DataFrame:
    """Read a table whose first line may name the columns; without names these are numbers."""
    import pandas as pd

    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    SET_BYTES.check(path.stat().st_size, f"{path} has {path.stat().st_size:,} bytes.")
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline(1_000_000).rstrip("\r\n")
        separator = max(SEPARATORS, key=first.count)
        has_names = not all(_is_number(cell) for cell in first.split(separator))
        table = pd.read_csv(
            path, sep=separator, header=0 if has_names else None, encoding="utf-8-sig", compression=None,
            low_memory=False,
        )  # fmt: skip
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path} cannot be read as a table ({first_line(error)}).") from None
    if table.empty:
        raise InputError(f"{path} holds no rows below its first line.")
    return table.rename(columns=str)


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().strip('"'))
    except ValueError:
        return False
    return True


def _chosen(table: pd.DataFrame, path: Path, address: Address) -> pd.DataFrame:
    """Take the columns that are asked for, in their order, or all but those to drop."""
    keep, drop = (_names(address.parameters.get(name)) for name in ("columns", "drop"))
    unknown = [name for name in (*keep, *drop) if name not in table.columns]
    if unknown:
        listed = ", ".join(table.columns[:12])
        raise InputError(
            f"{path} has no column {unknown[0]!r}; it has {listed}{', ...' if table.shape[1] > 12 else ''}."
        )
    chosen = table[keep] if keep else table
    chosen = chosen.drop(columns=[name for name in drop if name in chosen])
    if not chosen.shape[1]:
        raise InputError(f"{path}: no column is left; choose some with columns=A+B, or drop fewer.")
    return chosen


def _names(text: str | None) -> list[str]:
    return text.split("+") if text else []


def _values(table: pd.DataFrame, path: Path, kind: str) -> np.ndarray:
    """Return the numbers of a table as rows or signals; text and missing values are refused by their column."""
    for name in table.columns:
        column = table[name]
        if column.dtype.kind not in "buif":
            text = next(cell for cell in column if not isinstance(cell, (int, float)))
            raise InputError(f"{path}: column {name!r} holds text, such as {text!r}; leave it out with drop={name}.")
        if column.isna().any():
            row = int(column.isna().to_numpy().argmax())
            raise InputError(
                f"{path}: column {name!r} has {int(column.isna().sum())} missing values, the first in row {row}; fill "
                f"them, or leave the column out with drop={name}."
            )
    return arrange(table.to_numpy(dtype=np.float64), kind)


def _read(
    values: np.ndarray, unit: ValueRange | None, path: Path, positions: np.ndarray, progress: Progress
) -> np.ndarray:
    chosen = values[positions]
    progress(len(positions), len(positions))
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
        return chosen.astype(np.float32) if unit is None else unit.to_unit(chosen, str(path))


SOURCE = Source(
    name="table",
    summary="rows of numbers in a .csv or .tsv file; range=LOW,HIGH or range=FILE scales them to [0, 1]",
    example="table:my/rows.csv?range=0,100&drop=label",
    open=list_images,
    path="a .csv or .tsv file",
    suffixes=SUFFIXES,
    parameters=("columns", "drop", "as", *stated_range.PARAMETERS),
    order=65,
)
