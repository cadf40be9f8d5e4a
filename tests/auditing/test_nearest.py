import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Images
from recollect.auditing.nearest import find_nearest
from recollect.auditing.outcomes import Nearest
from recollect.auditing.pictures import as_colour
from recollect.auditing.statistics import ended_on_others, image_columns, returned_positions
from recollect.counting import counted
from recollect.nearest import COLUMNS, ROWS
from tests.auditing.making import images, pictures, small_audit


@settings(max_examples=30)
@given(seed=st.integers(0, 999), count=st.integers(1, 12), training=st.integers(1, 15))
def test_the_same_as_comparing_all_pairs(seed: int, count: int, training: int) -> None:
    estimates, stored = pictures(count, seed), pictures(training, seed + 1)
    found = find_nearest(estimates, Images(stored))
    pairs = (estimates[:, None] - stored[None]).double().square().flatten(2).mean(2)
    assert found.ids == [str(i) for i in pairs.argmin(1).tolist()]
    assert found.mse == pytest.approx(pairs.amin(1).tolist(), rel=1e-6)


def test_blocks_are_joined_right() -> None:
    """More estimates and more training images than are compared at a time."""
    count, training = ROWS + 6, 2 * COLUMNS + 7
    estimates, stored = pictures(count, 2, size=2, channels=1), images(training, 1, size=2, channels=1)
    copies = {0: training - 1, ROWS - 1: COLUMNS, ROWS: COLUMNS - 1, count - 1: 0}
    for position, source in copies.items():
        estimates[position] = stored.pixels[source] + 1e-5
    whole = find_nearest(estimates, stored)
    assert [whole.ids[position] for position in copies] == [str(source) for source in copies.values()]
    assert [whole.mse[position] for position in copies] == pytest.approx([1e-10] * 4, rel=0.05)
    distances = torch.cdist(estimates.flatten(1).double(), stored.pixels.flatten(1).double())
    assert whole.mse == pytest.approx((distances.amin(1).square() / 4).tolist(), rel=1e-3, abs=1e-12)


def test_an_estimate_that_is_not_finite_is_near_to_nothing() -> None:
    estimates = pictures(3, 1)
    estimates[1, 0, 0, 0] = math.nan
    estimates[2, 0, 0, 0] = math.inf
    found = find_nearest(estimates, images(3, 1))
    assert found == Nearest(["0", None, None], [0.0, None, None], [0, None, None])


def test_training_images_handed_out_from_unseen_ones_are_in_the_headline_and_the_tables() -> None:
    """`iterate` on a memorizer ends on a stored image whatever it starts from."""
    found = small_audit(methods="iterate", masks="half")
    control = found.record("control", "half", "iterate")
    others = ended_on_others(control, 1e-7)
    assert set(others) == set(control.ids)
    different = len(set(others.values()))
    assert found.headline.endswith(
        "Of 6 images it never saw: 0. "
        f"Attacks on 6 unseen images ended at {counted(different, 'training image')} instead."
    )
    facts = found.to_dict()
    assert facts["finding"]["returned"]["control"] == {"images": 6, "ended": 6, "different": different}
    assert facts["finding"]["returned"]["train"] == {"images": 8, "ended": 0, "different": 0}
    (row,) = (row for row in facts["summary"] if row["set"] == "control")
    assert row["other_training_images"] == {"recoveries": 6, "different": different}
    columns = image_columns(control)
    assert set(columns["outcome"]) == {"another training image"}
    assert columns["nearest"] == list(others.values())
    assert max(columns["nearest_mse"]) < 1e-7
    assert image_columns(replace(control, nearest=None))["outcome"] == [None] * 6
    handed_out = returned_positions(found.records, 1e-7)
    assert [str(position) for position in handed_out] == sorted(set(others.values()))
    assert (found.store.pictures["original/returned"] == as_colour(images(8, 1).pixels[handed_out])).all()
    assert found.store.pictures["index/returned"].tolist() == handed_out


def test_in_a_large_set_averages_find_what_pixels_find() -> None:
    draw = torch.Generator().manual_seed(0)
    training = Images(torch.rand(1300, 3, 16, 16, generator=draw))
    near = training.pixels[::50] + 0.01 * torch.randn(26, 3, 16, 16, generator=draw)
    exact = find_nearest(near, training)
    chosen = find_nearest(near, training, all_compared=100)
    assert chosen.index == exact.index == list(range(0, 1300, 50))
    assert chosen.mse == pytest.approx(exact.mse)
