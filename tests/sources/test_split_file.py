import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recollect import InputError, load
from recollect.auditing.damaged_sets import load_sets
from recollect.callbacks import MemorizationMonitor
from recollect.sources import control_of, split

Values = Callable[..., np.ndarray]


@pytest.fixture
def record(tmp_path: Path, values: Values) -> Path:
    """Return the record of 6 and 5 images of one array, grey."""
    np.save(tmp_path / "a.npy", values(12, 3, 8, 8))
    made = split(f"{tmp_path}/a.npy?count=6&grey=1", f"{tmp_path}/a.npy?count=5&part=control&grey=1")
    (tmp_path / "split.json").write_text(json.dumps(made.record()))
    return tmp_path / "split.json"


def test_train_and_control_are_the_recorded_ones(record: Path) -> None:
    expected = json.loads(record.read_text())
    for part, address in (("train", str(record)), ("control", control_of(record))):
        images = load(address or "")
        assert (list(images.ids), images.hash) == (expected[part]["ids"], expected[part]["sha256"])
        assert images.shape == (1, 8, 8)


def test_a_draw_is_of_one_part(record: Path) -> None:
    whole, few = load(f"{record}?part=control"), load(f"{record}?count=2&part=control")
    assert set(few.ids) < set(whole.ids)
    assert few.hash == whole[[whole.ids.index(name) for name in few.ids]].hash


def test_changed_files_are_refused(record: Path, values: Values) -> None:
    np.save(record.with_name("a.npy"), values(12, 3, 8, 8))
    with pytest.raises(InputError, match="has other pixels than its record: sha256"):
        load(record)


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"train": 3}')
    with pytest.raises(InputError, match="has no whole 'train' entry"):
        load(path)
    path.write_text(json.dumps({"train": {"source": str(path), "ids": [{}], "sha256": ""}}))
    with pytest.raises(InputError, match="has no whole 'train' entry"):
        load(path)
    path.write_text(json.dumps({"train": {"source": str(path), "ids": ["0"], "sha256": ""}}))
    with pytest.raises(InputError, match="which no file may name"):
        load(path)


def test_other_sources_name_no_control_set(tmp_path: Path) -> None:
    assert control_of("photos") is None
    assert control_of(tmp_path) is None


def test_relative_paths_are_found_beside_the_record(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load(record).hash
    relative = json.loads(record.read_text())
    for part in ("train", "control"):
        relative[part]["source"] = relative[part]["source"].replace(f"{record.parent}/", "")
    record.write_text(json.dumps(relative))
    assert load(record).hash == expected
    monkeypatch.chdir(record.parent)
    assert load("split.json").hash == expected
    record.with_name("a.npy").unlink()
    with pytest.raises(InputError, match=r"^split.json: There is no file a.npy"):
        load("split.json")


def test_as_the_control_set_a_record_gives_its_control_part(record: Path) -> None:
    expected = load(f"{record}?part=control")
    assert load_sets(str(record), str(record))["control"].ids == expected.ids
    assert load_sets(str(record), None)["control"].ids == expected.ids
    found = MemorizationMonitor(record, images=8)(lambda x: x * 0.5, 10)
    assert found is not None
    assert (found.train.total, found.control.total) == (6, 5)
