"""What comes from a cluster is what comes from this process."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect import load
from recollect.auditing import ShardedMeasurer
from recollect.distributed import WorkerPool
from recollect.models import PortableModel
from recollect.paper.run import run
from recollect.paper.scales import SMALL
from recollect.record_lines import read_lines
from recollect.records import PER_IMAGE, read_records
from tests.auditing.making import images, small_audit
from tests.paper.making import make_experiment, make_workspace
from tests.planted import Memorizer


def without_times(folder: Path) -> list[Any]:
    """Every line of the one file of results, less when and where it was made."""
    (path,) = (folder / "results").rglob("*.*")
    found = [content for content, _ in read_lines(path)]
    for facts in found:
        for name in ("seconds", "provenance", "history", "why", "log", "checksum"):
            facts.pop(name, None)
        for milestone in facts.get("milestones", ()):
            milestone.pop("seconds")
    return found


def test_the_papers_records_are_those_of_a_local_run(pool: WorkerPool, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    lines: list[str] = []
    assert run([make_experiment()], SMALL, make_workspace(tmp_path / "here"))
    assert run([make_experiment()], SMALL, make_workspace(tmp_path / "there"), runner=pool, log=lines.append)
    assert without_times(tmp_path / "here") == without_times(tmp_path / "there")
    assert len(without_times(tmp_path / "there")) == 13
    assert "12 of 12 cells recorded." in lines[-1]
    made = {p.name for p in (tmp_path / "here" / "work").rglob("*") if p.is_file()}
    assert made == {p.name for p in (tmp_path / "there" / "work").rglob("*") if p.is_file()}


def test_an_audit_is_that_of_a_local_run(pool: WorkerPool, tmp_path: Path) -> None:
    model = Memorizer(images(8, 1).pixels)
    measurer = ShardedMeasurer(pool, PortableModel(model), len(pool))
    here = small_audit(model=model, out=tmp_path / "here", noise_std=0.01)
    there = small_audit(model=model, out=tmp_path / "there", noise_std=0.01, measurer=measurer)
    assert [r.key for r in here.records] == [r.key for r in there.records]
    for a, b in zip(here.records, there.records, strict=True):
        assert {n: getattr(a, n) for n in PER_IMAGE if n != "mse"} == {
            n: getattr(b, n) for n in PER_IMAGE if n != "mse"
        }
        assert a.mse == pytest.approx(b.mse, rel=1e-4)
    assert len(read_records(tmp_path / "there" / "cells")) == len(there.records)


def test_workers_read_a_set_on_disk_in_pieces(
    pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).random((96, 3, 8, 8), np.float32)
    np.save(tmp_path / "train.npy", values)
    held = load(tmp_path / "train.npy")
    monkeypatch.setenv("RECOLLECT_MAX_IN_MEMORY_BYTES", "1000")
    monkeypatch.setenv("RECOLLECT_MAX_PIECE_BYTES", str(20 * values[0].nbytes))
    monkeypatch.chdir(tmp_path)
    on_disk = load("train.npy")  # workers have other working folders
    assert len(pickle.dumps(on_disk)) < values.nbytes / 10  # what travels to a worker
    model = Memorizer(held.pixels)
    options: dict[str, Any] = {"model": model, "masks": "block", "methods": "iterate", "pictures": False}
    measurer = ShardedMeasurer(pool, PortableModel(model), len(pool), largest=32)
    here, there = small_audit(given=held, **options), small_audit(given=on_disk, measurer=measurer, **options)
    assert [record.key for record in here.records] == [record.key for record in there.records]
    for mine, theirs in zip(here.records, there.records, strict=True):
        assert theirs.nearest == mine.nearest
        assert theirs.mse == pytest.approx(mine.mse, rel=1e-4, abs=1e-12)
