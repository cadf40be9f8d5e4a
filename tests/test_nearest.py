import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Images
from recollect.nearest import COLUMNS, nearest_candidates
from tests.auditing.making import images, pictures


@settings(max_examples=30)
@given(seed=st.integers(0, 999), queries=st.integers(1, 12), stored=st.integers(1, 15), count=st.integers(1, 20))
def test_the_same_as_sorting_all_pairs(seed: int, queries: int, stored: int, count: int) -> None:
    some, others = pictures(queries, seed), pictures(stored, seed + 1)
    pairs = (some[:, None] - others[None]).double().square().flatten(2).mean(2)
    candidates = nearest_candidates(some, Images(others), count)
    assert candidates.tolist() == pairs.argsort(1)[:, :count].tolist()


def test_candidates_of_several_blocks_are_joined() -> None:
    stored = images(2 * COLUMNS + 7, 1, size=2, channels=1)
    query = stored.pixels[COLUMNS - 1 : COLUMNS]
    pairs = (query - stored.pixels).double().square().flatten(1).mean(1)
    candidates = nearest_candidates(query, stored, 8)
    assert candidates[0, 0] == COLUMNS - 1
    assert torch.allclose(pairs[candidates[0]], pairs.sort().values[:8])
