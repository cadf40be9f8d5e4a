"""Records sorted into views, and the best over masks."""

from pathlib import Path
from typing import Any

import pytest

from recollect.records import Record
from recollect.report.read import Audit
from recollect.report.views import ANY, Results, families, results_of


def record(mse: list[Any], mask: str = "block", method: str = "blind", set_: str = "train", **cell: Any) -> Record:
    ids = [str(i) for i in range(len(mse))]
    return Record({"set": set_, "mask": mask, "method": method, **cell}, {}, ids, mse, [], [], [])


def results(*records: Record, **facts: Any) -> Results:
    return results_of(Audit(facts, list(records), {}, {}))


def test_an_image_counts_under_any_mask_when_one_mask_gave_it_back() -> None:
    found = results(record([1e-9, 1e-1, 1e-1, None]), record([1e-1, 1e-9, 1e-1, None], mask="half"))
    assert found.rows == [ANY, "block", "half"]
    bar = found.bar(found.views[0], ("train", ANY, "blind"))
    assert bar is not None
    assert (bar.rate.count, bar.rate.total) == (2, 4)
    assert bar.text == "50.0%"


def test_one_mask_has_no_row_for_any() -> None:
    assert results(record([1e-9])).rows == ["block"]


def test_sets_of_other_images_are_not_joined() -> None:
    assert results(record([1e-9]), record([1e-9, 1e-9], mask="half")).rows == ["block", "half"]


def test_order_is_the_summarys_then_the_papers() -> None:
    masks = ["dust", "block", "a.png"]
    found = results(*(record([0.1], mask=m, method=w) for m in masks for w in ("iterate", "other", "blind")))
    assert found.masks == ["block", "dust", "a.png"]
    assert found.methods == ["blind", "iterate", "other"]
    listed = results(*(record([0.1], mask=m) for m in masks), summary=[{"mask": "a.png"}])
    assert listed.masks == ["a.png", "block", "dust"]


def test_checkpoints_are_views_and_the_best_trained_comes_first() -> None:
    losses = (1e-4, 1e-8, 1e-6)
    found = results(*(record([loss], milestone=loss, seed=42, net=net) for net in "ab" for loss in losses))
    assert [v.milestone for v in found.views] == [1e-8, 1e-6, 1e-4] * 2
    assert found.views[0].facets == {"milestone": 1e-8, "net": "a"}  # the seed never varies
    assert "train loss 1.0 × 10⁻⁸" in found.views[0].label
    assert [[v.milestone for v in family] for family in families(found.views)] == [[1e-4, 1e-6, 1e-8]] * 2


@pytest.mark.parametrize("count", [1, 3])
def test_the_reports_order_does_not_depend_on_file_names(tmp_path: Path, count: int) -> None:
    records = [record([0.1], mask=m, set_=s) for m in ("scatter", "half") for s in ("control", "train")] * count
    assert results(*records).sets == ["train", "control"]
    assert results(*reversed(records)).masks == ["half", "scatter"]
