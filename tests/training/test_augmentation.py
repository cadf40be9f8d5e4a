import torch

from recollect.training.augmentation import shifted


def test_every_image_is_a_shifted_or_mirrored_copy_of_itself() -> None:
    images = torch.arange(6 * 2 * 5 * 7, dtype=torch.float32).view(6, 2, 5, 7)
    made = shifted(images, 2, torch.Generator().manual_seed(0))
    assert made.shape == images.shape
    seen = set()
    for image, changed in zip(images, made, strict=True):
        middle = changed[:, 2, 3]  # within two pixels of the edges nothing is padded
        row, column = divmod(int(middle[0] - image[0].min()), 7)
        step = float(changed[0, 2, 4] - changed[0, 2, 3])
        assert abs(row - 2) <= 2
        assert abs(column - 3) <= 2
        assert abs(step) == 1
        assert torch.equal(changed[1] - changed[0], torch.full((5, 7), 35.0))  # all channels alike
        seen.add((row, column, step))
    assert len(seen) > 3


def test_it_is_drawn_by_the_generator_alone() -> None:
    images = torch.rand(4, 3, 8, 8)
    same = [shifted(images, 1, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(same[0], same[1])
    assert not torch.equal(same[0], same[2])
