"""Files of an audit, edited at random: each is redone with an equal result, or refused in a sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.auditing.store import Store
from recollect.errors import InputError
from recollect.records import read_records
from recollect.report.read import read_audit
from tests.auditing.making import small_audit

Edit = Callable[[Path], None]
ODD_VALUES = [None, True, -1, 3, 0.5, float("nan"), float("inf"), "text", [], {}, [None], {"a": 1}]


def flip(position: int, bit: int) -> Edit:
    def edit(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[position % len(content)] ^= 1 << bit
        path.write_bytes(content)

    return edit


def truncate(position: int) -> Edit:
    def edit(path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: position % len(content)])

    return edit


def rewrite(steps: list[int], value: Any) -> Edit:
    """Walk into the values of a JSON file; replace the last one, or remove it for the value ..."""

    def edit(path: Path) -> None:
        if path.suffix != ".json":
            return truncate(steps[0])(path)
        inside = content = json.loads(path.read_text())
        for step in steps:
            names = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            name = names[step % len(names)]
            if not isinstance(inside[name], (dict, list)) or not inside[name] or step == steps[-1]:
                break
            inside = inside[name]
        if value is ...:
            del inside[name]
        else:
            inside[name] = value
        path.write_text(json.dumps(content))

    return edit


EDITS = st.one_of(
    st.builds(flip, st.integers(0, 10**6), st.integers(0, 7)),
    st.builds(truncate, st.integers(0, 10**6)),
    st.builds(
        rewrite, st.lists(st.integers(0, 100), min_size=1, max_size=4), st.sampled_from([*ODD_VALUES, ...])
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run(folder)
    return folder


def run(folder: Path) -> None:
    small_audit(out=folder, methods="iterate", masks="half", gamma=None, start="half_kept", attractors=1)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=EDITS, number=st.integers(0, 100))
def test_an_edited_cell_is_not_found_or_equal(finished: Path, tmp_path: Path, edit: Edit, number: int) -> None:
    folder = tmp_path / "edited"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(finished, folder)
    files = sorted((folder / "cells").iterdir())
    path = files[number % len(files)]
    edit(path)
    (record,) = [r for r in read_records(finished / "cells") if r.key == path.stem]
    store = Store(folder)
    again = store.find(path.stem, record.ids)
    assert again in (None, record)
    if again:
        whole = Store(finished)
        whole.find(path.stem, record.ids)
        assert all((store.pictures[name] == whole.pictures[name]).all() for name in whole.pictures)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=EDITS)
def test_an_edited_audit_is_refused_or_equal(finished: Path, tmp_path: Path, edit: Edit) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    edit(tmp_path / "audit.json")
    try:
        facts = read_audit(tmp_path).facts
    except InputError:
        return
    assert facts == read_audit(finished).facts


def test_swapped_files_are_not_taken_for_each_other(finished: Path, tmp_path: Path) -> None:
    records = read_records(finished / "cells")
    for suffix in ("json", "npz"):
        shutil.copytree(finished, tmp_path / suffix)
        a, b = (tmp_path / suffix / "cells" / f"{record.key}.{suffix}" for record in records[:2])
        content = a.read_bytes()
        a.write_bytes(b.read_bytes())
        b.write_bytes(content)
        assert [Store(tmp_path / suffix).find(r.key, r.ids) for r in records[:2]] == [None, None]


def test_an_audit_with_every_file_damaged_is_redone_and_equal(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    edits = [flip(300, 0), truncate(200), rewrite([5], ...), rewrite([3, 2], "text"), rewrite([4], [])]
    files = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".json", ".npz", ".csv"))
    assert {"cells", "steps"} <= {path.parent.name for path in files}
    for number, path in enumerate(files):
        edits[number % len(edits)](path)
    run(tmp_path)
    assert (tmp_path / "images.csv").read_bytes() == (finished / "images.csv").read_bytes()
    assert [r.key for r in read_records(tmp_path / "cells")] == [r.key for r in read_records(finished / "cells")]
    assert read_audit(tmp_path).facts["headline"] == read_audit(finished).facts["headline"]
    assert read_audit(tmp_path).facts["settings"] == read_audit(finished).facts["settings"]
    assert read_audit(tmp_path).facts["attractors"] == read_audit(finished).facts["attractors"]


def test_a_cell_that_vanishes_before_the_report_is_named(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    gone = min((tmp_path / "cells").glob("*.json"))
    gone.unlink()
    with pytest.raises(InputError, match=gone.name):
        read_audit(tmp_path)
