import numpy as np
import pytest

from recollect.extraction import extract, stored_images
from tests.auditing.making import images
from tests.planted import Memorizer


def test_nothing_seen_and_everything_seen_often() -> None:
    nothing, often = stored_images(np.zeros(5, int)), stored_images(np.array([9, 12, 0, 7]))
    assert (nothing.seen, nothing.estimate, nothing.at_least) == (0, 0.0, 0)
    assert (often.seen, often.estimate, often.at_least) == (3, 3.0, 3)


def test_the_estimate_is_chaos() -> None:
    """By hand: 6 images seen, 3 once and 2 twice in 11 draws: 6 + 10/11 * 9/4."""
    found = stored_images(np.array([1, 1, 1, 2, 2, 4, *[0] * 9]))
    assert found.estimate == pytest.approx(6 + 10 / 11 * 9 / 4)
    assert found.seen <= found.at_least <= found.estimate
    assert stored_images(np.array([1, 1, 1, 2, 2, 4, 0])).estimate == 7  # there are no more


@pytest.mark.parametrize("unequal", [0.0, 0.5, 1.5])
def test_the_bound_holds_in_95_of_100_draws_however_unequal_the_images_are(unequal: float) -> None:
    rng, held, nearer = np.random.default_rng(0), 0, 0
    for _ in range(400):
        size = int(rng.integers(20, 120))
        shares = np.exp(unequal * rng.standard_normal(size))
        captures = rng.multinomial(int(rng.integers(20, 300)), shares / shares.sum())
        found = stored_images(np.concatenate([captures, np.zeros(500, int)]))
        held += found.at_least <= size
        nearer += abs(found.estimate - size) <= abs(found.seen - size)
    assert held >= 0.95 * 400
    assert nearer >= 0.75 * 400


def test_the_bound_holds_on_planted_memorizers_of_known_size() -> None:
    """Of all training images a plant stores some."""
    held, above_seen = 0, 0
    plants = [(count, seed) for count in (10, 25, 50, 80) for seed in range(10)]
    for count, seed in plants:
        train = images(150, seed)
        found = extract(Memorizer(train.pixels[:count]), train, samples=80, seed=seed).stored
        assert found is not None
        held += found.seen <= found.at_least <= count
        above_seen += found.at_least > found.seen
    assert held >= 0.95 * len(plants)
    assert above_seen > 0
