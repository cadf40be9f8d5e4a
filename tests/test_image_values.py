import math

import torch

from recollect.image_values import (
    all_finite,
    any_channel,
    first_channel,
    mean_square,
    per_image,
    pixel_means,
    position_dimensions,
)


def test_one_value_an_image_meets_images_of_any_number_of_dimensions() -> None:
    flags = torch.tensor([True, False])
    for shape in ((2, 3), (2, 3, 4, 5)):
        assert torch.where(per_image(flags, torch.rand(shape)), 1, 0).sum() == 1
        assert per_image(flags, torch.rand(shape)).expand(shape)[0].all()


def test_the_mean_is_over_all_values_of_an_image() -> None:
    difference = torch.zeros(2, 3, 2, 2)
    difference[1, 0, 0, 0] = 6.0
    assert mean_square(difference).tolist() == [0.0, 3.0]


def test_one_bad_value_marks_its_image_alone() -> None:
    x = torch.zeros(4, 1, 2, 2)
    x[1, 0, 1, 1], x[2, 0, 0, 0] = math.nan, -math.inf
    assert all_finite(x).tolist() == [True, False, False, True]


def test_pixels_of_images_are_places_and_those_of_others_values() -> None:
    images, signals, rows = torch.rand(2, 3, 4, 5), torch.rand(2, 3, 8), torch.rand(2, 9)
    assert pixel_means(images).shape == any_channel(images > 0.9).shape == first_channel(images).shape == (2, 1, 4, 5)
    for values in (signals, rows):
        assert pixel_means(values) is values
        assert first_channel(values) is values
        assert torch.equal(any_channel(values > 0.5), values > 0.5)
    assert [position_dimensions(values) for values in (images, signals, rows)] == [(2, 3), (2,), (1,)]
