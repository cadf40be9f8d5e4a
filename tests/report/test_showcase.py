"""The pictures of the first screen: which images are chosen, and their captions."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from recollect.report.results import build_results
from recollect.report.showcase import Showcase, build_showcase
from recollect.scoring import APPROXIMATE
from tests.report.making import AuditFiles, record


def showcase(files: AuditFiles, threshold: float = APPROXIMATE) -> Showcase:
    found = build_showcase(files.in_memory, build_results(files.in_memory), "blind", threshold)
    assert found is not None
    return found


def test_recovered_training_images_stand_beside_an_unseen_one_that_is_not(planted: AuditFiles) -> None:
    found = showcase(planted)
    assert [(e.set, e.mask, e.recovered) for e in found.examples] == [
        ("train", "block", True),
        ("train", "dust", True),
        ("control", "dust", False),
    ]
    assert found.examples[0].name != found.examples[1].name
    assert (found.training, found.side, found.is_enlarged) == (2, 96, True)


def test_pictures_are_those_of_the_audit(planted: AuditFiles) -> None:
    example = showcase(planted).examples[0]
    position = planted.records[0].ids.index(example.name)
    names = ("degraded/train/block", "estimate/train/block/blind", "original/train")
    for (_, picture), name in zip(example.rows, names, strict=True):
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))))
        assert (drawn == planted.samples[name][position]).all()


def test_if_nothing_is_recovered_it_shows_that(planted: AuditFiles) -> None:
    assert not any(example.recovered for example in showcase(planted, threshold=1e-30).examples)
    assert showcase(planted, threshold=1e-30).examples[0].outcome == "not recovered"


def test_an_image_that_ended_on_another_training_image_is_named(planted: AuditFiles) -> None:
    records = [
        replace(r, nearest=["7"] * 24, nearest_index=[7] * 24, nearest_mse=[1e-9] * 24)
        if r.cell["set"] == "control"
        else r
        for r in planted.records
    ]
    shown = showcase(replace(planted, records=records)).examples[-1]
    assert (shown.ended_on, shown.outcome, shown.level) == ("7", "shows a training image", "shows")
    recovered = showcase(planted).examples[0]
    assert (recovered.ended_on, recovered.outcome, recovered.level) == (None, "recovered", "recovered")
    assert replace(recovered, set="control").level == "other"
    assert replace(recovered, ended_on="7").outcome == "shows another training image"


def test_of_unseen_images_one_that_shows_a_training_image_is_preferred(planted: AuditFiles) -> None:
    others: list[float | None] = [1.0] * 24
    others[5] = 1e-9
    records = [
        replace(r, nearest=["7"] * 24, nearest_index=[7] * 24, nearest_mse=others) if r.cell["set"] == "control" else r
        for r in planted.records
    ]
    assert showcase(replace(planted, records=records)).examples[-1].name == records[-1].ids[5]


def test_of_many_masks_four_are_shown() -> None:
    draw = np.random.default_rng(0)
    files = AuditFiles(
        samples={"original/train": draw.integers(0, 256, (2, 64, 64, 3), np.uint8), "index/train": np.arange(2)}
    )
    for number in range(6):
        files.records.append(record([1e-9, 1e-9], mask=f"m{number}"))
        files.samples[f"degraded/train/m{number}"] = files.samples["original/train"]
        files.samples[f"estimate/train/m{number}/blind"] = files.samples["original/train"]
    found = showcase(files)
    assert [example.mask for example in found.examples] == ["m0", "m2", "m3", "m5"]
    assert (found.side, found.is_enlarged) == (96, False)


@pytest.mark.parametrize("missing", ["original/train", "degraded/train", "estimate/train"])
def test_without_pictures_there_is_none(planted: AuditFiles, missing: str) -> None:
    samples = {name: array for name, array in planted.samples.items() if not name.startswith(missing)}
    audit = replace(planted, samples=samples).in_memory
    assert build_showcase(audit, build_results(audit), "blind", APPROXIMATE) is None
