"""Records sorted into cells, and the best of several masks."""

from typing import Any

from recollect.records import ANY_MASK, Record
from recollect.report.results import Results, build_results
from tests.report.making import AuditFiles, record


def results(*records: Record, **facts: Any) -> Results:
    return build_results(AuditFiles(list(records), facts=facts).in_memory)


def test_an_image_counts_under_any_mask_if_one_mask_recovers_it() -> None:
    built = results(record([1e-9, 1e-1, 1e-1, None]), record([1e-1, 1e-9, 1e-1, None], mask="half"))
    assert built.rows == [ANY_MASK, "block", "half"]
    bar = built.bar(("train", ANY_MASK, "blind"))
    assert bar is not None
    assert (bar.rate.count, bar.rate.total) == (2, 4)
    assert bar.text == "50.0%"


def test_one_mask_has_no_row_for_any() -> None:
    assert results(record([1e-9])).rows == ["block"]


def test_records_of_different_images_are_not_joined() -> None:
    assert results(record([1e-9]), record([1e-9, 1e-9], mask="half")).rows == ["block", "half"]


def test_masks_are_in_the_audits_order_and_methods_in_that_of_their_facts() -> None:
    masks, methods = ["dust", "block", "a.png"], ["iterate", "other", "blind"]
    records = [record([0.1], mask=mask, method=method) for mask in masks for method in methods]
    built = results(*records, methods={"blind": {}, "iterate": {}})
    assert built.masks == masks
    assert built.methods == ["blind", "iterate", "other"]


def test_training_images_come_first() -> None:
    assert results(record([0.1], set_name="control"), record([0.1])).sets == ["train", "control"]
