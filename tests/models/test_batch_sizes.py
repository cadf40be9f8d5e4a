import pytest
import torch

from recollect.models.batch_sizes import BatchSizes
from tests.models.making import images


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (BatchSizes(), [5]),
        (BatchSizes(1, 4096), [5]),
        (BatchSizes(1, 2), [2, 2, 1]),
        (BatchSizes(2, 4), [4, 2]),
        (BatchSizes(8), [8]),
        (BatchSizes(4, 4), [4, 4]),
    ],
)
def test_batches_are_cut_and_filled_to_fit(sizes: BatchSizes, expected: list[int]) -> None:
    given: list[int] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        given.append(len(x))
        return 2 * x

    assert torch.equal(sizes.apply(note, images(5)), 2 * images(5))
    assert given == expected
