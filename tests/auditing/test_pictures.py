import numpy as np
import pytest
import torch

from recollect import Iterate, mask, observe
from recollect.auditing.pictures import (
    SAMPLE,
    as_colour,
    as_grey,
    cell_pictures,
    log_levels,
    sampled,
)
from recollect.methods import KnownMask
from tests.auditing.making import images
from tests.planted import Memorizer


def test_a_sample_is_spread_over_the_set_and_smaller_for_large_images() -> None:
    many = sampled(images(200, 1, size=2))
    assert (len(many), many[0], many[-1]) == (SAMPLE, 0, 199)
    assert len(sampled(images(20, 1, size=128))) == 6
    assert sampled(images(3, 1)).tolist() == [0, 1, 2]
    assert sampled(images(3, 1), keep=False).tolist() == []


def test_values_are_clipped_and_never_rescaled() -> None:
    values = torch.tensor([-1.0, 0.0, 0.5, 1.0, 7.0, float("nan")]).view(1, 1, 1, 6)
    assert as_colour(values).ravel().tolist() == [0, 0, 128, 255, 255, 0]
    assert as_grey(values).ravel().tolist() == [0, 0, 128, 255, 255, 255]


def test_errors_are_drawn_on_a_logarithmic_scale() -> None:
    grey_levels = torch.tensor([0.0, 0.01, 1.0, 100.0, 200.0, torch.nan])
    assert log_levels(grey_levels / 255)[1:4].tolist() == pytest.approx([0, 0.5, 1], abs=1e-6)
    assert as_grey(log_levels(grey_levels / 255)).tolist() == [0, 0, 128, 255, 255, 255]


def test_a_cell_shows_damage_estimate_error_and_mask() -> None:
    stored = images(4, 1)
    seen = observe(stored, mask("half", stored.shape))
    shown = np.array([1, 3])
    known = cell_pictures(stored, seen, KnownMask()(Memorizer(stored.pixels), seen.y, seen.truth), shown)
    assert set(known) == {"degraded", "estimate", "log_error", "mask"}
    assert known["estimate"].shape == (2, 8, 8, 3)
    assert np.abs(known["estimate"].astype(int) - as_colour(stored.pixels[[1, 3]])).max() <= 1
    assert (known["log_error"] == 0).all()
    assert set(np.unique(known["mask"])) == {0, 255}
    assert "mask" not in cell_pictures(stored, seen, Iterate(limit=1)(lambda x: x, seen.y), shown)
