import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from recollect import audit
from recollect.auditing.noise_levels import LEVELS, memory_by_noise_level
from recollect.diffusion import Denoiser
from recollect.diffusion.preconditioning import Direct
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


def test_secmi_is_left_out_where_it_would_leave_the_levels_of_a_model() -> None:
    """It moves images up by a tenth: at the highest level there is nothing above."""
    train, control = pictures(6), pictures(5, seed=1)
    denoiser = Denoiser(posterior_mean(2 * train.pixels - 1), Direct(highest=0.42), train.image_shape, "low")
    below, highest = memory_by_noise_level(denoiser, train, control, sigmas=(0.2, 0.4, 0.8))
    assert below.auc["secmi"] is not None
    assert highest.auc["secmi"] is None
    assert (highest.recovered["train"], highest.auc["loss"]) == (1.0, 1.0)


def test_a_model_is_given_no_more_images_at_once_than_it_may() -> None:
    train, control, batches = pictures(5), pictures(5, seed=1), set()
    memory = posterior_mean(2 * train.pixels - 1)

    def f(x: Tensor, sigma: Tensor) -> Tensor:
        batches.add(len(x))
        return memory(x, sigma)

    denoiser = Denoiser.of(f, train.image_shape)
    batches.clear()
    (at_once,) = memory_by_noise_level(denoiser, train, control, sigmas=(0.2,))
    assert max(batches) == 5
    batches.clear()
    (in_parts,) = memory_by_noise_level(denoiser, train, control, sigmas=(0.2,), chunk=2)
    assert max(batches) == 2
    assert in_parts.denoising_loss == pytest.approx(at_once.denoising_loss)
    assert in_parts.recovered == at_once.recovered


def test_a_function_of_the_same_name_has_a_chart_of_its_own(tmp_path: Path) -> None:
    """Resumed in one folder: functions have no weights that would tell them apart."""
    train, control = pictures(5), pictures(4, seed=1)
    charts = [
        audit(
            memory_of(stored), train=train, control=control, masks="block", methods="blind", noise_level=0.2,
            gamma=0.5, out=tmp_path,
        ).facts["noise_levels"]
        for stored in (train, control)
    ]  # fmt: skip
    assert [rows[0]["recovered"] for rows in charts] == [{"train": 1.0, "control": 0.0}, {"train": 0.0, "control": 1.0}]
