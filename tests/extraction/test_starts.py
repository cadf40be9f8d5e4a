import torch

from recollect.extraction.starts import KINDS, kinds_of_starts, starts
from tests.diffusion.making import pictures


def test_a_start_depends_on_its_number_and_the_seed_alone() -> None:
    few, many = starts(3, (3, 8, 8), 1), starts(9, (3, 8, 8), 1)
    assert torch.equal(few, many[:3])
    assert not torch.equal(few, starts(3, (3, 8, 8), 2))


def test_there_are_all_kinds_within_the_range_of_pixels() -> None:
    drawn = starts(4 * len(KINDS), (3, 8, 8), 0)
    assert float(drawn.min()) >= 0
    assert float(drawn.max()) <= 1
    spreads = drawn.flatten(2).std(2).mean(1).view(-1, len(KINDS))
    assert float(spreads[:, 1].max()) < 1e-6  # constants
    assert bool((spreads[:, 0] > spreads[:, 2]).all())  # noise varies more than what is smooth


def test_unseen_images_and_blends_of_them_are_starts_too() -> None:
    unseen = pictures(3)
    drawn = starts(60, (3, 8, 8), 0, unseen)
    equal = (drawn[:, None] == unseen.pixels).flatten(2).all(2).any(1)
    assert bool(equal[4::6].all())
    assert not bool(equal[:4].any())
    low, high = unseen.pixels.amin(0), unseen.pixels.amax(0)
    assert bool(((drawn[5::6] >= low - 1e-6) & (drawn[5::6] <= high + 1e-6)).all())


def test_each_start_has_the_name_of_its_kind() -> None:
    assert kinds_of_starts(5, with_unseen=False) == ["noise", "constant", "smooth", "blend", "noise"]
    unseen = pictures(3)
    drawn = starts(6, (3, 8, 8), 0, unseen)
    names = kinds_of_starts(6, with_unseen=True)
    assert names[4:] == ["unseen image", "blend of unseen images"]
    assert bool((drawn[names.index("unseen image")] == unseen.pixels).flatten(1).all(1).any())
