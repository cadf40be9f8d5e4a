import json

import pytest
import torch

from recollect.auditing.noise_levels import LEVELS, memory_by_noise_level
from recollect.diffusion import Denoiser
from tests.diffusion.making import memory_of, pictures


def test_a_memory_is_seen_at_every_level_and_unseen_images_are_not() -> None:
    train, control = pictures(6), pictures(5, seed=1)
    levels = memory_by_noise_level(memory_of(train), train, control, sigmas=(0.1, 0.4))
    assert [level.sigma for level in levels] == [0.1, 0.4]
    for level in levels:
        assert level.recovered == {"train": 1.0, "control": 0.0}
        assert level.fixed_point_error["train"] < 1e-6 < level.fixed_point_error["control"]
        assert level.gap is not None
        assert level.gap > 0.01
        assert (level.auc["loss"], level.auc["fixed-point"]) == (1.0, 1.0)
    json.dumps([level.row() for level in levels])


def test_a_model_without_memory_shows_none() -> None:
    plain = Denoiser.of(lambda x, sigma: x / (1 + sigma**2), (3, 8, 8))
    (level,) = memory_by_noise_level(plain, pictures(8), pictures(8, seed=1), sigmas=(0.4,))
    assert level.recovered == {"train": 0.0, "control": 0.0}
    assert level.auc["loss"] == pytest.approx(0.5, abs=0.3)


def test_without_control_images_there_is_no_gap_and_unknown_levels_are_left_out() -> None:
    train = pictures(3)
    denoiser = memory_of(train)
    levels = memory_by_noise_level(denoiser, train, sigmas=(0.0001, 0.2))
    assert [level.sigma for level in levels] == [0.2]
    assert (levels[0].gap, levels[0].auc["loss"]) == (None, None)
    assert LEVELS[0] == 0.05
    assert torch.isfinite(torch.tensor(levels[0].denoising_loss["train"]))
