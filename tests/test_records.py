import gzip
import json
import math
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect import Blind, InputError
from recollect.files.limits import RECORD_BYTES, RECORD_PARTS
from recollect.records import (
    FORMAT,
    CellFolder,
    Record,
    atomically,
    cell_key,
    load_arrays,
    plain,
    provenance,
    read_json,
    read_record,
    read_records,
    read_sealed,
    save_arrays,
    short_hash,
    write_json,
    write_record,
    write_sealed,
)
from tests.full_disk import full_disk


def record(**more: Any) -> Record:
    rows: dict[str, Any] = {"ids": ["a", "b"], "mse": [1e-9, 0.25], "rounds": [3, 100], "steps": [120, 4000]}
    rows |= {"stop": ["converged", "limit"], "mask_accuracy": [1.0, 0.5], "mask_iou": [1.0, 0.25]}
    cell = {"set": "train", "mask": "half", "method": "blind"}
    return Record(**{"cell": cell, "settings": {"gamma": 0.5}, **rows, "seconds": 1.5, "provenance": {}} | more)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    written = record()
    assert read_record(write_record(tmp_path, written)) == written
    assert read_records(tmp_path) == [written]


@given(st.floats(1e-12, 1.0), st.integers(1, 9999), st.integers(-11, -1))
def test_a_compact_record_keeps_every_rate(error: float, digits: int, power: int) -> None:
    for threshold in (1e-7, 5e-4, float(f"{digits}e{power}")):
        for mse in (error, threshold, math.nextafter(threshold, 0), math.nextafter(threshold, 1)):
            kept = record(mse=[mse, 0.0]).compact().mse[0]
            assert (kept < threshold) == (mse < threshold)
            assert 0 <= mse - kept <= 1e-3 * mse


def test_a_packed_record_comes_back_and_is_small(tmp_path: Path) -> None:
    rng, many = np.random.default_rng(0), 25_000
    rounds = rng.integers(1, 30, many)
    wide = record(
        ids=[f"n0{i}_{i}" for i in range(many)], mse=(10 ** rng.uniform(-8, -1, many)).tolist(),
        rounds=rounds.tolist(), steps=(40 * rounds).tolist(), stop=["converged"] * many,
        mask_accuracy=rng.uniform(0.9, 1, many).tolist(), mask_iou=rng.uniform(0.7, 1, many).tolist(),
    )  # fmt: skip
    path = write_record(tmp_path, wide.compact(), packed=True)
    assert path.name.endswith(".json.gz")
    assert path.stat().st_size < 170_000  # of errors and masks all different; real ones are more alike
    assert read_record(path) == wide.compact()
    assert write_record(tmp_path, wide.compact(), packed=True).read_bytes() == path.read_bytes()
    write_record(tmp_path, record())
    assert len(read_records(tmp_path)) == 2


def test_a_packed_file_that_is_damaged_is_told(tmp_path: Path) -> None:
    whole = write_record(tmp_path, record(), packed=True).read_bytes()
    damaged = [b"", b"{}", whole[:20], whole[:-4], whole[:30] + b"xx" + whole[32:]]
    for content in damaged:
        (tmp_path / "x.json.gz").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as JSON"):
            read_record(tmp_path / "x.json.gz")
    write_json(tmp_path / "x.json.gz", [])
    with pytest.raises(InputError, match="not a record"):
        read_record(tmp_path / "x.json.gz")
    for data in ({}, {"odd": 1}, {**asdict(record()), "odd": 1}):
        write_sealed(tmp_path / "x.json.gz", FORMAT, data)
        with pytest.raises(InputError, match="parts missing or unknown"):
            read_record(tmp_path / "x.json.gz")


def test_an_error_that_is_no_number_is_null_on_disk_and_nan_in_the_score(tmp_path: Path) -> None:
    path = write_record(tmp_path, record(mse=[math.nan, 0.25]))
    assert json.loads(path.read_text())["mse"] == [None, 0.25]
    score = read_record(path).score
    assert math.isnan(float(score.mse[0]))
    assert (score.approximate.count, score.approximate.total) == (0, 2)


def test_a_key_tells_cells_and_settings_apart_and_is_a_safe_file_name() -> None:
    keys = {record().key, record(settings={"gamma": 0.1}).key, record(cell={"set": "control"}).key}
    assert len(keys) == 3
    assert record().key.startswith("train-half-blind-")
    nasty = cell_key({"mask": "../up/ä b.png" + "x" * 200}, {})
    assert "/" not in nasty
    assert len(nasty) < 100
    assert cell_key({"a": 1, "b": 2}, {"x": 1, "y": (2, 3)}) != cell_key({"a": 1, "b": 2}, {"x": 1, "y": [2, 4]})


def test_what_is_no_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_record(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"format": "another"}')
    with pytest.raises(InputError, match="not a record that this version"):
        read_record(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"format": ')
    with pytest.raises(InputError, match="cannot be read as JSON"):
        read_json(tmp_path / "x.json")


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.json"
    write_json(path, {"x": 1})

    def fail() -> None:
        with atomically(path) as file:
            file.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert read_json(path) == {"x": 1}
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_disk_that_takes_no_more_is_told_in_a_sentence(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(InputError, match=r"a\.json cannot be written: File too large\.$"):
        write_json(tmp_path / "a.json", {})
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_json(tmp_path / "file" / "a.json", {})


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_cells_finds_the_record_that_was_added(packed: bool, tmp_path: Path) -> None:
    cells, one = CellFolder(tmp_path / "cells", packed), record()
    assert cells.find(one.key) is None
    assert not cells.has(one.key)
    assert cells.add(one) == cells.path(one.key)
    assert cells.has(one.key)
    assert cells.find(one.key) == one
    assert read_records(cells.folder) == [one]


def test_a_folder_of_cells_refuses_the_record_of_another_cell(tmp_path: Path) -> None:
    cells, one = CellFolder(tmp_path), record()
    cells.add(one)
    cells.path(one.key).rename(cells.path("another"))
    with pytest.raises(InputError, match=f"another.json is the record of another cell, {one.key}"):
        cells.find("another")
    cells.path("another").write_text("{")
    with pytest.raises(InputError, match=r"another\.json cannot be read"):
        cells.find("another")


@pytest.mark.parametrize(
    "change",
    [
        {"mse": [1e-9]}, {"mse": [-1.0, 0.25]}, {"mse": ["a", 0.25]}, {"mse": [True, 0.25]}, {"mse": [1e999, 0.25]},
        {"ids": ["a"]}, {"ids": [1, 2]}, {"rounds": [1.5, 2]}, {"rounds": "ab"}, {"steps": [1]}, {"steps": "x"},
        {"stop": [1, 2]}, {"mask_iou": [0.5, 2.0]}, {"mask_accuracy": {}}, {"seconds": None}, {"seconds": -1},
        {"cell": ["a"]}, {"settings": None}, {"provenance": 3}, {"pictures_hash": 3},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_of_wrong_values_is_refused_even_with_a_right_checksum(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / f"{record().key}.json"
    data = {**asdict(record()), **change}
    text = json.dumps({"format": FORMAT, **data})  # what is infinite is written as such
    path.write_text(json.dumps({**json.loads(text), "checksum": "none"}))
    with pytest.raises(InputError, match=re.escape(path.name)):
        read_record(path)
    if not any(isinstance(value, list) and math.inf in value for value in change.values()):
        write_sealed(path, FORMAT, data)
        with pytest.raises(InputError, match=r"is not a record that can be used: it"):
            read_record(path)


def test_any_change_of_a_sealed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_sealed(path, "kind-1", {"a": [1, 2.5, None, "ä"], "b": {"c": True}})
    assert read_sealed(path, "kind-1", "a thing") == {"a": [1, 2.5, None, "ä"], "b": {"c": True}}
    assert path.read_text().rstrip("}\n").splitlines()[-1].startswith(' "checksum": ')
    laid_out_anew = json.dumps(json.loads(path.read_text()))
    for text, words in (
        (laid_out_anew.replace("2.5", "2.4"), "its checksum does not fit"),
        (laid_out_anew.replace('"c"', '"d"'), "its checksum does not fit"),
        (laid_out_anew.replace("kind-1", "kind-2"), "is not a thing that this version"),
        (laid_out_anew.replace("2.5", "NaN"), "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[]", "is not a thing"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read_sealed(path, "kind-1", "a thing")
    path.write_text(laid_out_anew)
    assert read_sealed(path, "kind-1", "a thing")["b"] == {"c": True}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b" " * (RECORD_BYTES.default + 1), "more than 25,165,824 bytes.*RECOLLECT_MAX_RECORD_BYTES"),
        (b"[" + b"[]," * RECORD_PARTS.default + b"1]", "1,000,001 lists and objects.*RECOLLECT_MAX_RECORD_PARTS"),
        (b"[" * 66 + b"1" + b"]" * 66, "nested more than 64 deep"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "nested more than 64 deep"),
        (b"1" * 5000, "cannot be read as JSON"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_json_that_asks_for_too_much_is_refused(tmp_path: Path, packed: bool, text: bytes, words: str) -> None:
    path = tmp_path / ("x.json.gz" if packed else "x.json")
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    with pytest.raises(InputError, match=words):
        read_json(path)


def test_json_below_the_limits_is_read(tmp_path: Path) -> None:
    deep = json.loads("[" * 64 + "1" + "]" * 64)
    contents: list[Any] = [deep, [[]] * 1000, ["[" * 1000]]
    for content in contents:
        write_json(tmp_path / "x.json.gz", content)
        assert read_json(tmp_path / "x.json.gz") == content


def test_a_pipe_or_a_folder_is_no_json(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", tmp_path):
        with pytest.raises(InputError, match="is not a file"):
            read_json(path)


def test_a_hash_of_settings_does_not_depend_on_their_order() -> None:
    assert short_hash({"a": 1, "b": 2.0}) == short_hash({"b": 2.0, "a": 1}) != short_hash({"a": 1, "b": 3.0})


def test_provenance_names_what_a_number_rests_on() -> None:
    found = provenance("cpu", started="now")
    assert {"recollect", "torch", "numpy", "python"} <= set(found["versions"])
    assert "cores" in found["device"]
    assert (found["threads"], found["started"]) == (torch.get_num_threads(), "now")


@dataclass(frozen=True)
class Nested:
    inner: Any


def test_any_setting_is_json() -> None:
    value = {1: Nested(Blind(gamma=0.1)), "t": torch.tensor([1.0, math.inf]), "s": (True, None, {2}), "p": Path("a")}
    assert plain(value) == {
        "1": {"inner": {"gamma": 0.1, "steps": 40, "limit": 100, "start": "half_kept"}},
        "t": [1.0, None], "s": [True, None, [2]], "p": "a",
    }  # fmt: skip
    json.dumps(plain(value), allow_nan=False)


def test_arrays_are_read_from_a_file(tmp_path: Path) -> None:
    arrays = {"a/b": np.arange(6, dtype=np.uint8).reshape(2, 3)}
    written = save_arrays(tmp_path / "x.npz", arrays)
    assert (load_arrays(tmp_path / "x.npz", written)["a/b"] == arrays["a/b"]).all()


def test_a_file_of_arrays_that_was_changed_or_is_missing_is_told(tmp_path: Path) -> None:
    written = save_arrays(tmp_path / "x.npz", {"a": np.arange(6)})
    save_arrays(tmp_path / "x.npz", {"a": np.arange(7)})
    with pytest.raises(InputError, match="was changed or damaged"):
        load_arrays(tmp_path / "x.npz", written)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_arrays(tmp_path / "y.npz")


def test_a_record_has_the_errors_of_both_answers() -> None:
    blind, known = record(mse_pasted=[1e-8, 0.5]), record(mse_unpasted=[1e-8, 0.5])
    assert [r.mse for r in map(blind.with_paste, (None, True, False)) if r] == [blind.mse, [1e-8, 0.5], blind.mse]
    assert [r.mse for r in map(known.with_paste, (None, True, False)) if r] == [known.mse, known.mse, [1e-8, 0.5]]
    assert [record().with_paste(paste) for paste in (None, True, False)] == [record(), None, None]


def test_a_compact_record_cuts_every_error() -> None:
    wide = record(mse=[0.123456, 0.1], mse_pasted=[0.123456, 0.1], cycles=[[1, 2, 0.123456, 0.654321]])
    assert wide.compact().mse == wide.compact().mse_pasted == [0.1234, 0.1]
    assert wide.compact().cycles == [[1, 2, 0.1234, 0.6543]]
