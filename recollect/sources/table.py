"""Tables of numbers in text files: .csv and .tsv, a row an item."""

from __future__ import annotations

import re
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.counting import counted
from recollect.errors import InputError, first_line
from recollect.files.limits import COLUMNS, IMAGES, SET_BYTES
from recollect.images.arrangement import arrange
from recollect.sources import stated_range
from recollect.sources.address import Address
from recollect.sources.base import Catalogue, Progress, Source
from recollect.sources.stated_range import ValueRange, read_range

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv")
SEPARATORS = (",", ";", "\t")
LONGEST_NAME = 200  # characters of a column's name, on average
LONGEST_SHOWN = 40  # characters of a name or a cell in an error
FEWEST_NUMBERED = 3  # columns: a first line of 0,1,2 is hardly a row of values, one of 0,1 may be
INDEX = "Unnamed: 0"  # pandas' name of a first column without one, where it writes its index
_TWO_NUMBERS = re.compile(r"\s*[-+]?\d+[,;\t ][-+\d]")


def list_images(path: Path, address: Address) -> Catalogue:
    """List the rows of a table; ids are their positions, the first below the header is 0."""
    kind = address.parameters.get("as", "rows")
    if kind not in ("rows", "signals"):
        raise InputError(f"as={kind} is unknown; a table holds rows or signals.")
    table = _chosen(_load(path), path, address)
    _check_no_index(table, path)
    unit = read_range(address, lambda other: _values(_same_columns(_load(other), table, other), other, kind))
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
            first = file.readline(LONGEST_NAME * COLUMNS.value).rstrip("\r\n")
        separator = max(SEPARATORS, key=first.count)
        cells = first.split(separator)
        COLUMNS.check(len(cells), f"{path} has {len(cells):,} columns.")
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows that are longer than the first
            table = pd.read_csv(
                path, sep=separator, header=0 if _are_names(cells) else None, index_col=False,
                encoding="utf-8-sig", compression=None, low_memory=False,
            )  # fmt: skip
    except pd.errors.ParserWarning:
        raise InputError(f"{path} has rows with more values than its first line has columns.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"{path} cannot be read as a table ({first_line(error)}).") from None
    if table.empty:
        raise InputError(f"{path} holds no rows below its first line.")
    return table.rename(columns=str)


def _are_names(cells: list[str]) -> bool:
    """Say whether the first line names the columns: by a text, or by their numbers, as pandas names unnamed columns."""
    numbers = len(cells) >= FEWEST_NUMBERED and cells == [str(number) for number in range(len(cells))]
    return numbers or not all(map(_is_number, cells))


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
        listed = ", ".join(map(_short, table.columns[:12]))
        raise InputError(
            f"{path} has no column {_short(unknown[0])!r}; it has {listed}{', ...' if table.shape[1] > 12 else ''}."
        )
    chosen = table[keep] if keep else table
    chosen = chosen.drop(columns=[name for name in drop if name in chosen])
    if not chosen.shape[1]:
        raise InputError(f"{path}: no column is left; choose some with columns=A+B, or drop fewer.")
    return chosen


def _check_no_index(table: pd.DataFrame, path: Path) -> None:
    if INDEX in table.columns:
        raise _refused(path, INDEX, "has no name in the first line, as the index of a data frame has none;")


def _same_columns(other: pd.DataFrame, table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Take from the table that states a range the columns of the table that is read, in their order."""
    missing = [name for name in table.columns if name not in other.columns]
    if missing:
        raise InputError(f"{path} states the range of each column, but has no column {_short(missing[0])!r}.")
    return other[list(table.columns)]


def _names(text: str | None) -> list[str]:
    return text.split("+") if text else []


def _values(table: pd.DataFrame, path: Path, kind: str) -> np.ndarray:
    """Return the numbers of a table as rows or signals; text and missing values are refused by their column."""
    texts = [name for name, kind in table.dtypes.items() if kind.kind not in "buif"]
    if texts:
        raise _refused(path, str(texts[0]), f"holds {_not_a_number(table[texts[0]])}")
    missing = table.isna().to_numpy()
    if missing.any():
        number = int(missing.any(0).argmax())
        amount = counted(int(missing[:, number].sum()), "missing value")
        first = int(missing[:, number].argmax())
        raise _refused(path, str(table.columns[number]), f"has {amount}, the first in row {first}; fill them, or")
    return arrange(table.to_numpy(dtype=np.float64), kind)


def _refused(path: Path, name: str, problem: str) -> InputError:
    return InputError(f"{path}: column {_short(name)!r} {problem} leave it out with drop={_short(name)}.")


def _not_a_number(column: pd.Series) -> str:
    """Say what a column holds that cannot be read as a number."""
    text = next((cell for cell in column if not isinstance(cell, (int, float))), None)
    if text is None:
        return "a whole number that is too large;"
    held = f"text, such as {_short(str(text))!r}"
    if _TWO_NUMBERS.match(str(text)[:LONGEST_SHOWN]):
        return f"{held}: write decimals with a point and separate all columns in the same way, or"
    return f"{held};"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


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
