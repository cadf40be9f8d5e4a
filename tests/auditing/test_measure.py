from pathlib import Path

import numpy as np
import pytest
import torch

import recollect
from recollect.auditing.damaged_sets import DamagedSet
from recollect.auditing.measure import Conditions, Measured, Trial, measure_cells, recover
from recollect.auditing.progress import no_progress
from recollect.auditing.store import Store
from recollect.methods import Blind, Iterate, KnownMask
from recollect.recovery import Progress
from tests.auditing.making import images
from tests.planted import Memorizer

TRAIN = images(4, 1)
F = Memorizer(TRAIN.pixels)
HALF = DamagedSet("train", "half", TRAIN, recollect.mask("half", TRAIN.shape))
CONDITIONS = Conditions("hash", 0.0, 42, {"device": "here"})


def test_a_cell_is_degraded_recovered_and_scored() -> None:
    measured = Trial.of(HALF, TRAIN, "mine", Blind(), CONDITIONS).measured(F)
    record = measured.record
    seen = recollect.observe(TRAIN, HALF.truth)
    by_hand = Blind()(F, seen.y)
    assert record.cell == {"set": "train", "mask": "half", "method": "mine"}
    assert record.mse == recollect.Score.of(by_hand.estimate, TRAIN.pixels).mse.tolist()
    assert (record.rounds, record.steps) == (by_hand.rounds.tolist(), by_hand.steps.tolist())
    assert (record.ids, record.provenance) == (list("0123"), {"device": "here"})
    assert record.stop == [stop.name.lower() for stop in by_hand.stops]
    assert record.mask_accuracy is not None
    drawn = {f"{kind}/train/half/mine" for kind in ("estimate", "log_error", "mask")}
    assert set(measured.pictures) == drawn | {"degraded/train/half"}


def test_a_part_of_a_cell_without_pictures_has_none() -> None:
    trial = Trial.of(HALF, TRAIN, "mine", Iterate(), CONDITIONS)
    nobody = np.array([], int)
    part = Trial(trial.images, TRAIN, trial.truth, trial.method, trial.cell, trial.settings, CONDITIONS, nobody)
    assert part.measured(F).pictures == {}


def test_the_truth_goes_only_to_methods_that_know_it() -> None:
    seen = recollect.observe(TRAIN, HALF.truth)
    assert torch.equal(recover(KnownMask(), F, seen).estimate, KnownMask()(F, seen.y, seen.truth).estimate)
    assert torch.equal(recover(Iterate(), F, seen).estimate, Iterate()(F, seen.y).estimate)


def test_an_agreement_of_masks_needs_a_mask_that_was_estimated() -> None:
    for method in (KnownMask(), Iterate()):
        assert Trial.of(HALF, TRAIN, "m", method, CONDITIONS).measured(F).record.mask_accuracy is None


@pytest.mark.parametrize(
    "other",
    [
        Trial.of(HALF, TRAIN, "m", Blind(gamma=0.1), CONDITIONS),
        Trial.of(HALF, TRAIN, "m", Blind(), Conditions("another", 0.0, 42)),
        Trial.of(HALF, TRAIN, "m", Blind(), Conditions("hash", 0.1, 42)),
        Trial.of(HALF, TRAIN[:3], "m", Blind(), CONDITIONS),
        Trial.of(DamagedSet("train", "half", TRAIN[:3], HALF.truth), TRAIN, "m", Blind(), CONDITIONS),
        Trial.of(
            DamagedSet("train", "half", TRAIN, recollect.mask("dust", TRAIN.shape)), TRAIN, "m", Blind(), CONDITIONS
        ),
    ],
    ids=["method", "model", "noise", "training images", "images", "mask"],
)
def test_what_decides_the_numbers_decides_the_key(other: Trial) -> None:
    assert Trial.of(HALF, TRAIN, "m", Blind(), CONDITIONS).key != other.key


def test_stored_cells_are_not_measured_again(tmp_path: Path) -> None:
    measured: list[str] = []

    def measurer(trial: Trial, progress: Progress) -> Measured:
        measured.append(trial.cell["method"])
        return trial.measured(F, progress)

    methods, store = {"blind": Blind(), "iterate": Iterate()}, Store(tmp_path)
    records = measure_cells(measurer, [HALF], TRAIN, methods, CONDITIONS, store, no_progress)
    assert measured == [record.cell["method"] for record in records] == ["blind", "iterate"]
    assert {"original/train", "index/train", "degraded/train/half"} <= set(store.pictures)
    assert measure_cells(measurer, [HALF], TRAIN, methods, CONDITIONS, Store(tmp_path), no_progress) == records
    assert measured == ["blind", "iterate"]
