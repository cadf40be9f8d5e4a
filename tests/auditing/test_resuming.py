"""An audit's folder used again: resumed, grown, or taken by another audit."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from recollect.auditing import Audit
from tests.auditing.making import comparable_facts, images, small_audit
from tests.planted import Memorizer


class Counting(Memorizer):
    """Counts how often it is asked, and may be interrupted."""

    def __init__(self, stored: Tensor, stop_after: float = float("inf")) -> None:
        super().__init__(stored)
        self.calls, self.stop_after = 0, stop_after

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > self.stop_after:
            raise KeyboardInterrupt
        return super().__call__(x)


def short_audit(**more: Any) -> Audit:
    return small_audit(**{"methods": "blind", **more})


def counted(out: Path, stop_after: float = float("inf"), **more: Any) -> tuple[Audit, int]:
    model = Counting(images(8, 1).pixels, stop_after)
    return short_audit(model=model, out=out, **more), model.calls


def cells(folder: Path) -> set[str]:
    return {p.stem for p in (folder / "cells").glob("*.json")}


@pytest.mark.parametrize("settings", [{}, {"gamma": None, "start": None, "attractors": 2}], ids=["given", "searched"])
def test_stopped_anywhere_and_resumed_it_is_the_same_audit(tmp_path: Path, settings: dict[str, Any]) -> None:
    settings = {"methods": "blind,iterate", "masks": "half", **settings}
    whole, calls = counted(tmp_path / "whole", **settings)
    for share in (0.3, 0.6, 0.95):
        out = tmp_path / str(share)
        with pytest.raises(KeyboardInterrupt):
            counted(out, stop_after=int(calls * share), **settings)
        before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
        for path in out.glob("cells/*.json"):
            json.loads(path.read_text())  # what is there can be read
        resumed, more_calls = counted(out, **settings)
        assert more_calls < calls or share < 0.4
        assert all(p.stat().st_mtime_ns == t for p, t in before.items() if p.parent.name in ("cells", "steps"))
        assert (out / "images.csv").read_bytes() == (tmp_path / "whole" / "images.csv").read_bytes()
        assert comparable_facts(out) == comparable_facts(tmp_path / "whole")
        assert str(resumed) == str(whole)
        with np.load(out / "samples.npz") as a, np.load(tmp_path / "whole" / "samples.npz") as b:
            assert set(a.files) == set(b.files)
            assert all((a[n] == b[n]).all() for n in a.files)


def test_done_already_it_runs_no_cell_again(tmp_path: Path) -> None:
    _, calls = counted(tmp_path)
    _, again = counted(tmp_path)
    assert again < calls / 3  # the probe, the loss and the traces are left


def test_more_masks_are_added_to_what_is_there(tmp_path: Path) -> None:
    counted(tmp_path, masks="half")
    before = cells(tmp_path)
    found, _ = counted(tmp_path, masks="half,block")
    assert before < cells(tmp_path) == set(comparable_facts(tmp_path)["cells"])
    assert found.masks == ["half", "block"]
    assert not (tmp_path / "earlier").exists()


def test_the_order_of_the_folder_does_not_change_the_audit(tmp_path: Path) -> None:
    counted(tmp_path, masks="half")
    grown, _ = counted(tmp_path, masks="block,half")
    assert str(grown) == str(short_audit())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audit, Path]:
    folder = tmp_path_factory.mktemp("finished")
    return short_audit(out=folder), folder


@pytest.mark.parametrize(
    "other",
    [
        {"gamma": 0.1},
        {"noise_std": 0.01, "methods": "iterate"},
        {"control": images(6, 9)},
        {"masks": "dust"},
        {"model": Memorizer(images(8, 1).pixels, sharpness=2.0)},
        {"masks": "half"},
    ],
    ids=lambda o: next(iter(o)),
)
def test_another_audit_in_the_same_folder_is_never_mixed_in(
    finished: tuple[Audit, Path], tmp_path: Path, other: dict[str, Any]
) -> None:
    first, folder = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    old = (tmp_path / "audit.json").read_bytes()
    second = short_audit(out=tmp_path, **other)
    assert cells(tmp_path) == set(comparable_facts(tmp_path)["cells"]) == {r.key for r in second.records}
    assert (tmp_path / "earlier" / "1" / "audit.json").read_bytes() == old
    assert cells(tmp_path / "earlier" / "1") == {r.key for r in first.records}
    assert str(second) == str(short_audit(**other))


def test_another_mask_under_the_same_name_is_another_cell(tmp_path: Path) -> None:
    left, right = (np.kron(row, np.ones((8, 4), bool)) for row in ([[True, False]], [[False, True]]))
    first = small_audit(out=tmp_path, masks={"mine": left}, methods="iterate", control=None)
    second = small_audit(out=tmp_path, masks={"mine": right}, methods="iterate", control=None)
    assert {r.key for r in first.records}.isdisjoint(r.key for r in second.records)


def test_going_back_to_the_first_audit_finds_its_cells(tmp_path: Path) -> None:
    counted(tmp_path)
    counted(tmp_path, gamma=0.1)
    _, calls = counted(tmp_path)
    _, fresh = counted(tmp_path / "fresh")
    assert calls < fresh / 3
