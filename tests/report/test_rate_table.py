from recollect.records import ANY_MASK
from recollect.report.rate_table import build_rows, excess_texts, other_image_texts
from recollect.report.read import Cell
from recollect.report.results import build_results
from tests.report.making import AuditFiles


def test_every_record_and_every_best_of_masks_has_a_row(planted: AuditFiles) -> None:
    rows = list(build_rows(build_results(planted.in_memory)))
    assert len(rows) == len(planted.records) + 3 * 2  # three methods, two sets
    assert [row.cell.mask for row in rows[:6]] == [ANY_MASK] * 6
    for record in planted.records:
        row = next(row for row in rows if row.cell == Cell.of(record.cell))
        assert row.approximate == f"{record.score.approximate.value:.1%}"
        assert row.psnr == f"{record.score.mean_psnr:.1f}"
        assert (row.mask_iou == "") == (record.mask_iou is None)
        assert sum(int(part.split()[0]) for part in row.stops.split(", ")) == len(record.ids)


def test_a_row_of_several_masks_has_no_texts_of_one_record(planted: AuditFiles) -> None:
    row = next(build_rows(build_results(planted.in_memory)))
    assert row.cell.mask == ANY_MASK
    assert (row.psnr, row.mask_accuracy, row.mask_iou, row.stops) == ("", "", "", "")


def test_the_excess_over_unseen_images_is_the_audits() -> None:
    accurate, approximate = {"value": 0.5, "low": 0.25, "high": 0.75}, {"value": 0.0, "low": -0.1, "high": 0.1}
    row = {"mask": "block", "method": "blind", "accurate": accurate, "approximate": approximate}
    texts = excess_texts(AuditFiles(facts={"excess": [row]}).in_memory)
    assert texts == {("train", "block", "blind"): ("+50.0% [+25.0%, +75.0%]", "+0.0% [-10.0%, +10.0%]")}


def test_recoveries_that_ended_on_another_training_image_are_counted() -> None:
    cells = [{"set": "control", "mask": "block", "method": name} for name in ("blind", "iterate", "other")]
    ends = [{"recoveries": 4, "different": 2}, {"recoveries": 0, "different": 0}, None]
    rows = [{**cell, "other_training_images": end} for cell, end in zip(cells, ends, strict=True)]
    texts = other_image_texts(AuditFiles(facts={"summary": rows}).in_memory)
    assert texts == {("control", "block", "blind"): "4 (2 different)", ("control", "block", "iterate"): "0"}
