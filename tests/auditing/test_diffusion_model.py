import json
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import Blind, InputError, audit
from recollect.auditing.tuning import DENOISER_ROUNDS, Setting, search_space
from recollect.degradation import all_erased, half_kept
from recollect.diffusion import Denoiser, open_denoiser
from recollect.diffusion.library import diffusers
from recollect.images import Images
from tests.auditing.making import images
from tests.diffusion.folders import unet
from tests.diffusion.making import memory_of

QUICK: dict[str, Any] = {"masks": "block,half", "methods": "blind,known,iterate"}


def quick(model: Any, train: Images, **settings: Any) -> Any:
    return audit(model, train=train, **{**QUICK, "control": images(4, 2), **settings})


def test_the_noise_level_is_searched_with_gamma_on_images_left_out(tmp_path: Path) -> None:
    train = images(10, 1)
    result = quick(memory_of(train), train, out=tmp_path)
    settings = result.facts["settings"]
    assert {row["noise_level"] for row in settings["tried"]} == {0.05, 0.1, 0.2, 0.4, 0.8, "annealed"}
    assert settings["tried_on_masks"] == ["block", "half"]
    assert {row["gamma"] for row in settings["tried"]} == {0.1, 0.5, 1.0}
    assert {row["start"] for row in settings["tried"]} == {"half_kept"}
    assert not set(settings["tuning_images_left_out"]) & set(result.records[0].ids)
    best = max(settings["tried"], key=lambda r: (r["accurate"], r["approximate"], -r["error"]))
    model = result.facts["model"]
    assert ("annealed" if model["annealed"] else model["noise_level"]) == best["noise_level"]
    assert settings["methods"]["blind"]["limit"] == 10
    assert "Noise level, gamma and start were searched on 4 other training images" in str(result)
    assert result.rate("train", "block", "blind").value == 1
    assert result.rate("control", "any mask", "blind").value == 0
    saved = json.loads((tmp_path / "audit.json").read_text())
    assert [row["sigma"] for row in saved["noise_levels"]] == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert saved["noise_levels"][2]["recovered"] == {"train": 1.0, "control": 0.0}
    again = quick(memory_of(train), train, out=tmp_path)
    assert again.facts["model"]["noise_level"] == result.facts["model"]["noise_level"]
    assert [r.key for r in again.records] == [r.key for r in result.records]


def test_the_noise_level_may_fall_along_the_steps() -> None:
    train = images(5, 1)
    given: dict[str, Any] = {"gamma": 0.5, "start": "half_kept"}
    annealed = quick(memory_of(train), train, noise_level="annealed", **given)
    assert annealed.facts["model"]["annealed"] == (0.5, 0.05)
    assert annealed.facts["model"]["noise_level"] == 0.2
    assert annealed.rate("train", "block", "blind").value == 1
    fixed = quick(memory_of(train), train, noise_level=0.2, **given)
    assert fixed.facts["model"]["annealed"] is None
    assert {r.key for r in fixed.records}.isdisjoint(r.key for r in annealed.records)
    for set_name in ("train", "control"):  # which takes no step of ADMM
        iterated = [result.record(set_name, "half", "iterate").mse for result in (annealed, fixed)]
        assert iterated[0] == iterated[1]
    handed_in = quick(memory_of(train).at(0.2, annealed=True), train, **given)
    assert [r.mse for r in handed_in.records] == [r.mse for r in annealed.records]


def test_every_method_runs_and_ddnm_with_the_model_itself_is_a_reference() -> None:
    train = images(5, 1)
    methods = "blind,refined,known,iterate,ddnm-model"
    result = quick(memory_of(train), train, masks="block", methods=methods, noise_level=0.2, gamma=0.5)
    for method in ("blind", "refined", "known", "ddnm-model"):
        assert result.rate("train", "block", method, 5e-4).value == 1
        assert result.rate("control", "block", method, 5e-4).value == 0
    assert "ddnm-model" not in result.counted
    steps = set(result.record("train", "block", "ddnm-model").steps)
    assert steps == {4 * 49}  # two of the 50 quadratic time steps coincide
    with pytest.raises(InputError, match="ddnm-model is for diffusion models of pixels, and this model is none"):
        quick(lambda x: x, train, methods="ddnm-model")


def test_a_noise_level_that_is_given_is_taken() -> None:
    train = images(5, 1)
    given: dict[str, Any] = {"gamma": 0.5, "start": "half_kept"}
    result = quick(memory_of(train), train, noise_level=0.3, **given)
    assert result.facts["model"]["noise_level"] == 0.3
    assert "tried" not in result.facts["settings"]
    fixed = quick(memory_of(train).at(0.3), train, **given)
    assert fixed.facts["model"]["noise_level"] == 0.3
    assert [r.mse for r in fixed.records] == [r.mse for r in result.records]
    other = quick(memory_of(train), train, noise_level=0.1, **given)
    assert {r.key for r in other.records}.isdisjoint(r.key for r in result.records)


def test_methods_that_have_their_settings_are_run_at_a_first_level() -> None:
    train = images(5, 1)
    result = quick(memory_of(train), train, methods=[Blind(limit=3)])
    assert result.facts["model"]["noise_level"] == 0.2
    assert result.facts["settings"]["methods"]["blind"]["limit"] == 3


def test_the_space_follows_what_is_asked_for() -> None:
    f = memory_of(images(3, 1)).at(0.2)
    space = search_space(f, 0.3, "auto", 0.0, "auto")
    assert (space.gammas, space.starts, space.rounds) == ((0.3,), (half_kept, all_erased), DENOISER_ROUNDS)
    assert space.noise_levels == (0.05, 0.1, 0.2, 0.4, 0.8, "annealed")
    assert search_space(f, 0.3, "all_erased", 0.0, 0.4).only is not None
    annealed = f.denoiser.at(0.2, annealed=True)
    assert search_space(annealed, 0.3, None, 0.0, "annealed").only == Setting(0.3, half_kept, "annealed")


def test_mistakes_are_refused() -> None:
    train = images(5, 1)
    with pytest.raises(InputError, match="noise_level is a number or 'auto' or 'annealed', not 'high'"):
        quick(memory_of(train), train, noise_level="high")
    with pytest.raises(InputError, match="noise_level is a positive number"):
        quick(memory_of(train), train, noise_level=-1.0)
    with pytest.raises(InputError, match=r"The noise level is a number from 0\.002 to 80"):
        quick(memory_of(train), train, noise_level=100.0)
    with pytest.raises(InputError, match="noise_level is for diffusion models"):
        quick(lambda x: x, train, noise_level=0.2)
    with pytest.raises(InputError, match="takes images of 3x4x4; these are 3x8x8"):
        quick(Denoiser.of(lambda x, sigma: x, (3, 4, 4)), train)
    with pytest.raises(InputError, match="audited on one machine"):
        audit(memory_of(train), train=train, measurer=lambda trial, progress: None)  # type: ignore[arg-type, return-value]


def test_a_pipeline_is_audited_like_a_denoiser() -> None:
    pipeline = diffusers().DDPMPipeline(unet(), diffusers().DDPMScheduler(1000))
    given: dict[str, Any] = {"train": colours(3, 1), "control": colours(3, 2), "gamma": 0.5, "noise_level": 0.2}
    result = audit(pipeline, masks="block", methods="known", **given)
    assert result.facts["model"]["noise_level"] == 0.2
    opened = audit(open_denoiser(pipeline), masks="block", methods="known", **given)
    assert [r.mse for r in result.records] == [r.mse for r in opened.records]


def colours(count: int, seed: int) -> Images:
    return Images(torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed)))
