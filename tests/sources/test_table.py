from pathlib import Path

import numpy as np
import pytest

from recollect import InputError, load


def written(folder: Path, text: str, name: str = "a.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_rows_have_named_columns(tmp_path: Path) -> None:
    rows = load(written(tmp_path, "age,income\n0.1,0.2\n0.3,1\n"))
    assert (rows.kind, rows.columns, rows.ids) == ("rows", ("age", "income"), ("0", "1"))
    assert np.allclose(rows.pixels, [[0.1, 0.2], [0.3, 1.0]])


def test_a_separator_at_the_end_of_rows_is_no_column(tmp_path: Path) -> None:
    rows = load(written(tmp_path, "a,b\n0.1,0.2,\n0.3,0.4,\n"))
    assert rows.columns == ("a", "b")
    assert np.allclose(rows.pixels, [[0.1, 0.2], [0.3, 0.4]])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_and_whether_there_is_a_header_are_found(tmp_path: Path, separator: str) -> None:
    rows = load(written(tmp_path, "0.1,0.2\n0.3,1\n".replace(",", separator), "a.tsv"))
    assert (len(rows), rows.columns) == (2, ("0", "1"))


def test_columns_are_chosen_and_dropped(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a,b,c\nx,0.1,0.2,0.3\ny,0.4,0.5,0.6\n")
    assert load(f"{path}?columns=c+a").columns == ("c", "a")
    assert load(f"{path}?drop=id+b").columns == ("a", "c")
    with pytest.raises(InputError, match="no column is left"):
        load(f"{path}?columns=a&drop=a")


def test_columns_may_be_named_by_their_numbers(tmp_path: Path) -> None:
    """As pandas names those of an array; two numbers in a row may also be values."""
    rows = load(written(tmp_path, "0,1,2\n0.1,0.2,0.3\n"))
    assert (len(rows), rows.columns) == (1, ("0", "1", "2"))
    assert len(load(written(tmp_path, "0,1\n0.1,0.2\n"))) == 2


def test_a_range_is_taken_from_the_same_columns_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,100\n2,300\n")
    other = written(tmp_path, "label,b,a\nx,0,0\ny,400,4\n", "b.csv")
    assert np.allclose(load(f"{path}?range={other}").pixels, [[0.25, 0.25], [0.5, 0.75]])
    with pytest.raises(InputError, match=r"b\.csv states the range of each column, but has no column 'c'"):
        load(written(tmp_path, "a,c\n1,2\n", "c.csv") + f"?range={other}")


def test_rows_may_be_signals(tmp_path: Path) -> None:
    assert load(f"{written(tmp_path, '0.1,0.2,0.3,0.4,0.5')}?as=signals").shape == (1, 5)


def test_a_range_is_stated_for_all_or_by_a_file_for_each_column(tmp_path: Path) -> None:
    train = written(tmp_path, "age,income\n20,1000\n60,3000\n")
    other = written(tmp_path, "age,income\n30,1500\n50,2000\n", "b.csv")
    assert np.allclose(load(f"{train}?range=0,4000").pixels, [[0.005, 0.25], [0.015, 0.75]])
    assert np.allclose(load(f"{train}?range={train}").pixels, [[0, 0], [1, 1]])
    rows = load(f"{other}?range={train}")
    assert np.allclose(rows.pixels, [[0.25, 0.25], [0.75, 0.5]])
    assert load(rows.name).hash == rows.hash


def test_values_beyond_the_range_are_refused_or_clipped(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2\n3,9\n")
    with pytest.raises(InputError, match=r"1 of 4 values lie outside the stated range, such as 9; .*clip=1"):
        load(f"{path}?range=0,4")
    assert np.allclose(load(f"{path}?range=0,4&clip=1").pixels, [[0.25, 0.5], [0.75, 1]])


@pytest.mark.parametrize(
    ("text", "query", "message"),
    [
        ("a,b\n1,x\n", "", "column 'b' holds text, such as 'x'; leave it out with drop=b"),
        ("a,b\n1,2\n3,\n", "", "column 'b' has 1 missing value, the first in row 1"),
        ("a,b\n1," + "1" * 400, "", "column 'b' holds a whole number that is too large; leave it out with drop=b"),
        ("a,b\n0.1,0.2,0.3\n", "", "has rows with more values than its first line has columns"),
        ("a,b\n0.1," + "x" * 100, "", "such as 'x{40}...'; leave"),
        ("a;b\n0,1;0,2\n", "", "column 'a' holds text, such as '0,1': write decimals with a point"),
        ("0,1;0,2\n0,3;0,4\n", "", "column '1;0' holds text, such as '3;0': write decimals with a point"),
        ("1,2,3,4,5\n", "", "has 5 columns.*RECOLLECT_MAX_COLUMNS"),
        ("a,b\n1,2\n", "?drop=c", "has no column 'c'; it has a, b"),
        (",a,b\n0,1,2\n", "", "column 'Unnamed: 0' has no name in the first line, .*with drop=Unnamed: 0"),
        ("a,b\n1,2\n", "", r"Values of rows must lie in \[0, 1\].*\?range=LOW,HIGH"),
        ("a,b\n", "", "holds no rows"),
        ("", "", "cannot be read as a table"),
        ("a,b\n1,2,3\n4\n5,6,7,8\n", "", "cannot be read as a table"),
        ("1,2\n", "?as=images", "as=images is unknown; a table holds rows or signals"),
        ("1,2\n", "?range=3,1", "the lower first"),
        ("1,2\n", "?range=low", "neither two numbers, such as -1,1, nor a file"),
        ("1,2\n", "?clip=1", "state it with range=LOW,HIGH"),
        ("1,2\n", "?range=0,3&clip=yes", "clip=yes is unknown"),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path, text: str, query: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MAX_COLUMNS", "4")
    with pytest.raises(InputError, match=message):
        load(written(tmp_path, text) + query)
