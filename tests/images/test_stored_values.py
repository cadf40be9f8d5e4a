import numpy as np
import torch

from recollect.images.stored_values import InMemory, OnDisk

VALUES = torch.arange(24, dtype=torch.uint8).view(6, 1, 2, 2)


class Reader:
    """Read from a tensor, and remember how many images were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, positions: np.ndarray) -> torch.Tensor:
        self.asked += len(positions)
        return VALUES[torch.from_numpy(positions)]


def on_disk(channels: int = 1) -> OnDisk:
    return OnDisk(Reader(), np.arange(6), (channels, 2, 2))


def test_both_give_the_same_values() -> None:
    for rows in (slice(1, 4), np.array([5, 0]), torch.tensor([2, 2])):
        assert torch.equal(on_disk().read(rows), InMemory(VALUES).read(rows))
        assert torch.equal(on_disk().select(rows).read(), InMemory(VALUES).select(rows).read())
        assert on_disk().select(rows).shape == InMemory(VALUES).select(rows).shape


def test_a_selection_reads_nothing_and_its_values_alone_later() -> None:
    reader = Reader()
    few = OnDisk(reader, np.arange(6), (1, 2, 2)).select(slice(2, 4))
    assert reader.asked == 0
    few.read(slice(0, 1))
    assert reader.asked == 1


def test_grey_images_of_a_set_with_colour_have_three_equal_channels() -> None:
    assert torch.equal(on_disk(3).read(slice(0, 2)), VALUES[:2].expand(-1, 3, -1, -1))
