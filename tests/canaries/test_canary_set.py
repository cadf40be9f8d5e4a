from dataclasses import replace

import numpy as np
import pytest

from recollect.canaries.design import Design
from tests.auditing.making import images
from tests.canaries.making import small_canaries


def test_coins_split_the_images() -> None:
    canaries = small_canaries()
    assert len(canaries.train) == canaries.inside.sum()
    assert {*canaries.train.ids, *canaries.control.ids} == set(canaries.images.ids) == set(canaries.repeats_of)
    assert not {*canaries.train.ids} & {*canaries.control.ids}


def test_what_to_train_on_is_repeated() -> None:
    canaries = small_canaries()
    to_train = canaries.training_images
    assert len(to_train) == canaries.repeats[canaries.inside].sum() + len(canaries.known) * canaries.known_repeats
    twice = canaries.images.ids[int(np.flatnonzero(canaries.inside & (canaries.repeats == 2))[0])]
    copies = [number for number, name in enumerate(to_train.ids) if name.startswith(twice)]
    assert [to_train.ids[number] for number in copies] == [f"{twice}-01", f"{twice}-02"]
    original = canaries.images[canaries.images.ids.index(twice)]
    assert all(to_train[number].hash == original.hash for number in copies)
    assert not any(name.startswith(out) for name in to_train.ids for out in canaries.control.ids)


@pytest.mark.parametrize(
    "change",
    [
        {"inside": ~small_canaries().inside},
        {"repeats": small_canaries().repeats[::-1]},
        {"images": images(40, 9)},
        {"known": images(8, 9)},
        {"design": Design(1e-6)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_commitment_is_to_everything(change: dict[str, object]) -> None:
    canaries = small_canaries()
    assert replace(canaries).commitment == canaries.commitment
    assert replace(canaries, **change).commitment != canaries.commitment  # type: ignore[arg-type]
