import json
from pathlib import Path

import pytest
import torch

from recollect import audit
from recollect.auditing.noise_levels import LEVELS, memory_by_noise_level
from recollect.diffusion import Denoiser
from tests.diffusion.making import memory_of, pictures, posterior_mean


def test_a_memory_is_seen_at_every_level_and_unseen_images_are_not() -> None:
    train, control = pictures(6), pictures(5, seed=1)
    levels = memory_by_noise_level(memory_of(train), train, control, sigmas=(0.1, 0.4))
    assert [level.sigma for level in levels] == [0.1, 0.4]
    for level in levels:
        assert level.recovered == {"train": 1.0, "control": 0.0}
        moved, unseen_moved = (level.fixed_point_error[name] for name in ("train", "control"))
        assert moved is not None
        assert unseen_moved is not None
        assert moved < 1e-6 < unseen_moved
        assert level.gap is not None
        assert level.gap > 0.01
        assert (level.auc["loss"], level.auc["fixed-point"]) == (1.0, 1.0)
    json.dumps([level.row() for level in levels])


def test_a_model_without_memory_shows_none() -> None:
    plain = Denoiser.of(lambda x, sigma: x / (1 + sigma**2), (3, 8, 8))
    (level,) = memory_by_noise_level(plain, pictures(8), pictures(8, seed=1), sigmas=(0.4,))
    assert level.recovered == {"train": 0.0, "control": 0.0}
    assert level.auc["loss"] == pytest.approx(0.5, abs=0.3)


def test_where_a_model_is_not_finite_nothing_is_known_and_a_warning_says_so(tmp_path: Path) -> None:
    """An AUC of 0.5 or a recovery of 0% would be a finding."""
    train, control = pictures(6), pictures(5, seed=1)
    memory = posterior_mean(2 * train.pixels - 1)
    model = Denoiser.of(lambda x, sigma: memory(x, sigma) / (sigma < 0.7), train.image_shape, "failing")
    with pytest.warns(
        UserWarning, match="The model failing returned NaN or infinite values at noise level 0.8[.] What"
    ):
        known, unknown = memory_by_noise_level(model, train, control, sigmas=(0.4, 0.8))
    assert (known.recovered["train"], known.auc["loss"]) == (1.0, 1.0)
    nothing = {"train": None, "control": None}
    assert unknown.recovered == unknown.fixed_point_error == unknown.denoising_loss == nothing
    assert unknown.auc == {"fixed-point": None, "loss": None, "secmi": None}
    assert unknown.gap is None
    with pytest.warns(UserWarning, match="at noise level 0.8"):
        audit(
            model, train=train, control=control, masks="block", methods="blind", noise_level=0.2, gamma=0.5,
            out=tmp_path,
        )  # fmt: skip
    assert "returned NaN or infinite values at noise level 0.8" in (tmp_path / "report.html").read_text()


def test_without_control_images_there_is_no_gap_and_unknown_levels_are_left_out() -> None:
    train = pictures(3)
    denoiser = memory_of(train)
    levels = memory_by_noise_level(denoiser, train, sigmas=(0.0001, 0.2))
    assert [level.sigma for level in levels] == [0.2]
    assert (levels[0].gap, levels[0].auc["loss"]) == (None, None)
    assert LEVELS[0] == 0.05
    assert torch.isfinite(torch.tensor(levels[0].denoising_loss["train"]))
