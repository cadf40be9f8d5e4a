import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError, UNet
from recollect.checkpoints import load_checkpoint, load_checkpoint_about
from recollect.training import BEST, MILESTONES, Progress, Recipe, Training, train_to_loss
from tests.training.small import RECIPE, loss_of, small_images, small_network, train, vector


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Training, Path, list[Progress]]:
    """One whole run to 1e-8, by a clock that counts steps."""
    reports: list[Progress] = []
    folder = tmp_path_factory.mktemp("run")
    return train(folder, report=reports.append, seconds_per_pass=0.01), folder, reports


def test_it_reaches_the_loss(trained: tuple[Training, Path, list[Progress]]) -> None:
    done, _, _ = trained
    assert done.reached
    assert done.loss <= 1e-8
    assert loss_of(done.network, small_images()) == pytest.approx(done.loss, rel=1e-3)
    assert done.why == str(done) == done.log[-1].split("] ")[1]
    assert "reached after" in done.why
    assert not done.network.training


def test_every_milestone_holds_when_measured_again_from_its_file(
    trained: tuple[Training, Path, list[Progress]],
) -> None:
    done, folder, _ = trained
    assert [m.wanted for m in done.milestones] == list(MILESTONES)
    for m in done.milestones:
        assert m.path is not None
        saved = load_checkpoint(m.path)
        assert loss_of(saved.network, small_images()) <= m.wanted * (1 + 1e-6)
        assert m.loss == saved.about["loss"] <= m.wanted
        assert (m.steps, m.wanted) == (saved.about["steps"], saved.about["milestone"])
    assert {p.name for p in folder.iterdir()} >= {f"loss-1e-0{i}.safetensors" for i in range(4, 9)}


def test_the_metadata_is_complete(trained: tuple[Training, Path, list[Progress]]) -> None:
    about = load_checkpoint_about(trained[1] / "loss-1e-06.safetensors")
    assert about["network"] == {"class": "FullyConnected", **small_network().settings}
    assert about["recipe"] == json.loads(json.dumps(RECIPE.record()))
    assert about["seed"] == 42
    assert about["data_hash"] == small_images().hash
    assert about["images"] == 20
    assert about["loss"] <= about["milestone"] == 1e-6
    assert about["steps"] > 0
    assert about["seconds"] > 0
    assert set(about["versions"]) >= {"recollect", "torch", "python"}
    assert about["versions"]["torch"] == torch.__version__
    assert about["device"]
    assert any("reached 1e-05" in line for line in about["log"])
    assert "least squares" in about["finish"]


def test_precision_is_explicit(trained: tuple[Training, Path, list[Progress]]) -> None:
    about = load_checkpoint_about(trained[1] / "loss-1e-08.safetensors")
    start = {"step": 0, "seconds": 0.0, "loss": None, "forward": "float32", "backward": "float32"}
    assert about["precision"] == {"steps": [start], "measured": "float32", "finish": "float64"}


def test_the_curve_is_saved(trained: tuple[Training, Path, list[Progress]]) -> None:
    done, folder, _ = trained
    lines = (folder / "loss.csv").read_text().splitlines()
    assert lines[0] == "seconds,steps,loss,averaged,rate"
    assert [int(line.split(",")[1]) for line in lines[1:]] == [p.steps for p in done.history]
    assert done.history[-1].steps == done.milestones[-1].steps  # to the very end
    assert (folder / "loss.svg").read_text().startswith("<?xml")


def test_progress_is_sensible(trained: tuple[Training, Path, list[Progress]]) -> None:
    done, _, reports = trained
    assert [r.point for r in reports] == done.history
    assert [r.point.steps for r in reports] == [50 * (i + 1) for i in range(len(reports))]
    assert reports[0].next_milestone == 1e-4
    assert reports[0].seconds_left is None
    assert {r.until for r in reports[:-1]} == {1e-8}
    assert (reports[-1].next_milestone, reports[-1].seconds_left, reports[-1].until) == (None, 0.0, None)
    assert [line for r in reports for line in r.messages] == done.log[:-1]  # the last line is the result itself
    guesses = [r.seconds_left for r in reports if r.seconds_left is not None]
    assert guesses
    assert all(0 <= r.seconds_left < 120 * r.point.seconds for r in reports if r.seconds_left is not None)


@pytest.mark.parametrize(
    "recipe", [Recipe(optimizer="muon", rate=0.01), Recipe(batch=6, rate=2e-3)], ids=["muon", "batch"]
)
def test_other_recipes_reach_it_too(recipe: Recipe) -> None:
    assert train(recipe=recipe, until=1e-6).reached


@pytest.mark.parametrize("activation", ["prelu", "softplus"])
def test_other_activations(activation: str) -> None:
    done = train(network=small_network(activation=activation), until=1e-5, max_steps=6000)
    assert done.reached, done.log


def test_a_unet_on_a_few_images() -> None:
    network = UNet(channels=1, widths=(8, 16), activation="softplus")
    done = train(network=network, images=small_images(2), until=2e-2, milestones=(), recipe=None, max_steps=2000)
    assert done.reached, done.log


@pytest.mark.parametrize(
    "recipe", [RECIPE, Recipe(optimizer="muon", rate=0.02), Recipe(batch=6)], ids=["adam", "muon", "batch"]
)
def test_same_seed_same_bits(recipe: Recipe) -> None:
    one, again = (train(recipe=recipe, max_steps=150) for _ in range(2))
    assert torch.equal(vector(one.network), vector(again.network))
    assert one.loss == again.loss
    assert [(p.loss, p.averaged) for p in one.history] == [(p.loss, p.averaged) for p in again.history]


def test_the_global_seed_plays_no_part_and_is_left_alone() -> None:
    results = []
    for seed in (1, 2):
        network = small_network()
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        results.append(vector(train(network=network, recipe=Recipe(batch=6), max_steps=100).network))
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*results)


def test_at_the_step_limit_it_says_how_far_it_got(tmp_path: Path) -> None:
    done = train(tmp_path, milestones=(5e-2, 1e-2), max_steps=270)
    assert not done.reached
    assert done.history[-1].steps == 270  # not a window more
    assert f"Train loss {done.loss:.2e} stopped at the limit of 270 steps after 270 steps" in done.why
    assert done.why.endswith("short of 1e-08.")
    assert done.milestones
    assert all(m.path is not None and m.path.exists() for m in done.milestones)
    assert loss_of(done.network, small_images()) == pytest.approx(done.loss, rel=1e-3)
    assert done.loss <= min(p.averaged for p in done.history) * (1 + 1e-6)  # the best, not the last


def test_a_run_that_fell_short_leaves_its_best_weights_until_it_gets_there(tmp_path: Path) -> None:
    short = train(tmp_path, max_steps=270)
    saved = load_checkpoint(tmp_path / BEST)
    assert loss_of(saved.network, small_images()) == pytest.approx(short.loss, rel=1e-3)
    assert (saved.about["loss"], saved.about["milestone"], saved.about["steps"]) == (short.loss, None, 270)
    assert train(tmp_path).reached
    assert not (tmp_path / BEST).exists()


def test_the_log_is_a_file_too(tmp_path: Path) -> None:
    done = train(tmp_path)
    assert (tmp_path / "log.txt").read_text().splitlines() == done.log


@pytest.mark.parametrize("limit", [{"max_steps": 0}, {"max_seconds": 0}])
def test_a_limit_of_nothing_is_a_limit(limit: dict[str, Any]) -> None:
    done = train(**limit)
    assert not done.reached
    assert done.history == []
    assert done.loss == pytest.approx(loss_of(small_network(), small_images()), rel=1e-6)


def test_milestones_below_the_goal_are_not_pursued_and_order_does_not_matter() -> None:
    done = train(until=1e-3, milestones=(1e-8, 1e-2, 1e-3, 3e-2))
    assert [m.wanted for m in done.milestones] == [3e-2, 1e-2, 1e-3]


def test_milestones_close_to_each_other_have_their_own_files(tmp_path: Path) -> None:
    done = train(tmp_path, until=1e-2, milestones=(1.4e-2, 1.1e-2))
    assert len({m.path for m in done.milestones}) == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"until": 0.0}, "loss to reach must be positive, got 0.0"),
        ({"until": math.nan}, "must be positive, got nan"),
        ({"milestones": (1e-4, -1.0)}, r"must be positive, got 1e-08 with milestones \(0.0001, -1.0\)"),
        ({"max_steps": -1}, "A limit cannot be negative"),
        ({"network": FullyConnected((1, 4, 4), layers=2, width=4)}, "takes images of 1x4x4; these are 1x8x8"),
        ({"network": nn.Linear(5, 5)}, "does not take these images of 1x8x8"),
        ({"network": "fc"}, "is an nn.Module, not a str"),
        ({"until": "low"}, "must be positive, got 'low'"),
        ({"max_seconds": "long"}, "A limit is a number, got 'long' seconds"),
        ({"device": "nowhere"}, "The device nowhere cannot be used"),
        ({"images": "photos"}, "Expected images, got the text 'photos'"),
        ({"network": UNet(channels=1, widths=(4, 4, 4, 4, 4))}, "multiples of 16; the images are 8x8"),
        ({"network": nn.Flatten()}, "was given 1x1x8x8 .* returned 1x64"),
    ],
)
def test_what_cannot_be_trained(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        train(**wrong)


def test_the_default_recipe_fits_the_network(tmp_path: Path) -> None:
    for network, optimizer in ((small_network(), "adam"), (UNet(channels=1, widths=(4, 8)), "muon")):
        folder = tmp_path / optimizer
        train_to_loss(network, small_images(), device="cpu", out=folder, max_steps=0)
        assert load_checkpoint_about(folder / BEST)["recipe"]["optimizer"] == optimizer


def test_a_network_is_trained_all_the_way_and_passes_one_milestone_after_the_other() -> None:
    done = train(recipe=Recipe(rate=2e-3), until=1e-7)
    assert done.reached
    assert not [line for line in done.log if "solved" in line]
    steps = [milestone.steps for milestone in done.milestones]
    assert len(set(steps)) == len(steps) == 4
    for milestone in done.milestones:
        assert milestone.wanted / 10 < milestone.loss <= milestone.wanted
