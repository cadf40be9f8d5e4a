import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import InputError
from recollect.auditing import Audit, ShardedMeasurer
from recollect.auditing.shards import cut
from recollect.distributed.jobs import Budget, Job, Log, Runner, in_this_process
from recollect.models import PortableModel
from recollect.records import PER_IMAGE, Record, load_arrays
from tests.auditing.making import images, small_audit
from tests.planted import Memorizer


@given(st.integers(1, 5000), st.integers(1, 40), st.integers(1, 600))
def test_every_image_is_in_one_shard_and_shards_are_alike(count: int, pieces: int, largest: int) -> None:
    shards = cut(count, pieces, largest)
    assert [i for shard in shards for i in shard] == list(range(count))
    sizes = {len(shard) for shard in shards}
    assert 0 < min(sizes) <= max(sizes) <= min(largest, min(sizes) + 1)
    assert len(shards) <= max(pieces, -(-count // largest))


def audited(out: Path, runner: Runner | None, **more: Any) -> Audit:
    model = Memorizer(images(8, 1).pixels)
    measurer = ShardedMeasurer(runner, PortableModel(model), workers=2) if runner else None
    return small_audit(model=model, out=out, measurer=measurer, methods="blind,iterate,known", **more)


def rows(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in PER_IMAGE if name != "mse"}


@pytest.mark.parametrize(
    "more", [{"masks": "half"}, {"masks": "block", "fill": "images", "noise_std": 0.01}, {"masks": "blur:1.5"}], ids=str
)
def test_shards_joined_are_the_cell(tmp_path: Path, more: dict[str, Any]) -> None:
    whole, joined = audited(tmp_path / "whole", None, **more), audited(tmp_path / "joined", in_this_process, **more)
    assert [r.key for r in whole.records] == [r.key for r in joined.records]
    for a, b in zip(whole.records, joined.records, strict=True):
        assert rows(a) == rows(b)
        assert a.mse == pytest.approx(b.mse, rel=1e-3, abs=1e-14)
        assert b.provenance["shards"] == len(cut(len(b.mse), 6, 4096))
    assert whole.checks == joined.checks
    pictures = load_arrays(tmp_path / "whole" / "samples.npz"), load_arrays(tmp_path / "joined" / "samples.npz")
    assert pictures[0].keys() == pictures[1].keys()
    assert all(np.abs(pictures[0][k].astype(int) - pictures[1][k]).max() <= 1 for k in pictures[0])


def test_a_shard_travels_without_the_rest_of_its_set(tmp_path: Path) -> None:
    sizes: list[int] = []

    def weigh(jobs: Iterable[Job], budget: Budget, log: Log) -> bool:
        for job in jobs:
            for task in job(budget):
                _, shard, _training, truth, *_ = task.inputs
                sizes.extend(len(pickle.dumps(each.value)) for each in (shard, truth))
                task.keep(task.function(*[getattr(i, "value", i) for i in task.inputs]))
        return True

    audited(tmp_path, weigh, control=None, masks="block", fill="noise")
    two, all_eight = 2 * 3 * 8 * 8 * 4, 8 * 3 * 8 * 8 * 4
    assert two < max(sizes) < two + 2000 < all_eight  # two images of eight, and what pickle adds


def test_a_cell_with_a_failed_shard_is_no_cell(tmp_path: Path) -> None:
    def fails(_jobs: Iterable[Job], _budget: Budget, log: Log) -> bool:
        log("training / block / blind, images 0 to 1: failed: no reason")
        return False

    lines: list[str] = []
    measurer = ShardedMeasurer(fails, PortableModel(Memorizer(images(8, 1).pixels)), 2, log=lines.append)
    with pytest.raises(InputError, match="6 of 6 shards of a cell failed"):
        small_audit(out=tmp_path, measurer=measurer)
    assert lines == ["training / block / blind, images 0 to 1: failed: no reason"]
    assert not list((tmp_path / "cells").glob("*"))
