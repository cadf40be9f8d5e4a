from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect import InputError
from recollect.auditing.store import Store
from recollect.records import Record


def record(mask: str = "half", **settings: Any) -> Record:
    cell = {"set": "train", "mask": mask, "method": "blind"}
    return Record(cell, settings, ["a"], [0.5], [1], [40], ["limit"])


IDS = ["a"]
PICTURES = {"estimate/train/half/blind": np.zeros((1, 4, 4, 3), np.uint8)}


def test_a_finished_cell_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find(record().key, IDS) is None
    store.add(record(), PICTURES)
    again = Store(tmp_path)
    assert again.find(record().key, IDS) == record()
    assert list(again.pictures) == list(PICTURES)
    assert again.find(record(gamma=1).key, IDS) is None


def test_without_a_folder_all_is_in_memory() -> None:
    store = Store(None)
    store.begin(["x"])
    store.add(record(), PICTURES)
    assert store.find(record().key, IDS) is None
    assert list(store.pictures) == list(PICTURES)


@pytest.mark.parametrize("damaged", ["json", "npz"])
@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut off"])
def test_a_damaged_cell_is_run_again(tmp_path: Path, damaged: str, content: bytes | None) -> None:
    Store(tmp_path).add(record(), PICTURES)
    path = tmp_path / "cells" / f"{record().key}.{damaged}"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert Store(tmp_path).find(record().key, IDS) is None


def test_an_audit_that_grows_stays_where_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(record(), PICTURES)
    (tmp_path / "audit.json").write_text("{}")
    Store(tmp_path).begin([record().key, record("dust").key])
    assert (tmp_path / "audit.json").exists()
    assert not (tmp_path / "earlier").exists()


def test_another_audit_is_put_aside_whole_and_its_cells_can_be_used_again(tmp_path: Path) -> None:
    old = Store(tmp_path)
    old.add(record(), PICTURES)
    old.add(record("dust"), PICTURES)
    (tmp_path / "audit.json").write_text("old")
    new = Store(tmp_path)
    new.begin([record("dust").key, record("block").key])
    assert not list((tmp_path / "cells").glob("*"))
    assert (tmp_path / "earlier" / "1" / "audit.json").read_text() == "old"
    assert len(list((tmp_path / "earlier" / "1" / "cells").glob("*.json"))) == 2
    assert new.find(record("dust").key, IDS) == record("dust")
    assert [p.stem for p in (tmp_path / "cells").glob("*.json")] == [record("dust").key]
    third = Store(tmp_path)
    third.begin([record("frame").key])
    assert (tmp_path / "earlier" / "2" / "cells" / f"{record('dust').key}.json").exists()


def test_a_step_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> Any:
        made.append(1)
        return {"rows": [1, (2, 3)]}

    for store in (Store(tmp_path), Store(tmp_path)):
        assert store.once("tuning", {"gamma": 1}, make) == {"rows": [1, [2, 3]]}
    assert len(made) == 1
    Store(tmp_path).once("tuning", {"gamma": 2}, make)
    assert len(made) == 2
    assert Store(None).once("tuning", {}, make) == {"rows": [1, [2, 3]]}  # the same in memory as from disk


def test_a_folder_that_cannot_be_one_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; results need a folder"):
        Store(tmp_path / "file")
    with pytest.raises(InputError, match="Nothing can be written to the folder"):
        Store(tmp_path / "file" / "below")
    with pytest.raises(InputError, match="Nothing can be written to the folder"):
        Store("/proc/recollect")


def test_copying_to_another_folder_keeps_pictures_and_mixes_nothing(tmp_path: Path) -> None:
    Store(tmp_path).add(record("dust"), PICTURES)
    memory = Store(None)
    memory.add(record(), PICTURES)
    memory.copy_to(tmp_path, [record()])
    assert [p.stem for p in (tmp_path / "cells").glob("*.json")] == [record().key]
    assert Store(tmp_path).find(record().key, IDS) == record()
