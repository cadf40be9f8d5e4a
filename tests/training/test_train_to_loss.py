import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, InputError, UNet
from recollect.checkpoints import load_checkpoint, load_checkpoint_about
from recollect.training import BEST, MILESTONES, Progress, Recipe, Training, train_to_loss
from recollect.training import loop as run_module
from recollect.training.monitor import Limits, Point
from recollect.training.rate_schedule import Fall, time_left
from tests.training.small import RECIPE, loss_of, small_images, small_network, train, vector


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Training, Path, list[Progress]]:
    """One whole run to 1e-8, looked at from all sides below."""
    folder, reports = tmp_path_factory.mktemp("run"), []
    return train(folder, report=reports.append), folder, reports


def said(training: Training, words: str) -> list[str]:
    return [line for line in training.log if words in line]


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


def test_the_switch_from_tf32_is_noted_with_its_step(tmp_path: Path) -> None:
    """On a CPU the switch changes nothing, but it is made and recorded as on a GPU."""
    made = run_module.Run(
        small_network(), small_images(), Recipe(rate=2e-3, tf32_until=1e-2, average=5), tmp_path, torch.device("cpu")
    )
    made.stepper.forward_precision = "tf32"
    made.precision.clear()
    made._note_precision(None)
    done = made.train([1e-4], run_module.Limits(), None)
    steps = load_checkpoint_about(tmp_path / "loss-1e-04.safetensors")["precision"]["steps"]
    assert [s["forward"] for s in steps] == ["TF32", "float32 as three TF32 products"]
    assert steps[0]["step"] == 0 < steps[1]["step"] < done.milestones[0].steps
    assert 1e-4 < steps[1]["loss"] < 1e-2
    assert said(done, "forward pass in float32 from here")


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
    assert [line for r in reports for line in r.said] == done.log[:-1]  # the last line is the result itself
    guesses = [r.seconds_left for r in reports if r.seconds_left is not None]
    assert guesses
    assert all(0 <= r.seconds_left < 120 * r.point.seconds for r in reports if r.seconds_left is not None)


def test_time_left_ends_where_the_last_layer_is_solved() -> None:
    """From there on it takes no time, so no estimate reaches beyond it."""
    made = run_module.Run(small_network(), small_images(), RECIPE, None, torch.device("cpu"))
    made.watch.history = [Point(i, 50 * i, 0.1 * i**-3.0, 0.1 * i**-3.0, 1e-3) for i in range(1, 11)]
    point, left = made.watch.history[-1], []
    for until in (1e-5, 1e-8):
        made.wanted = [until]
        left.append(made._progress(point, Limits()).seconds_left)
    assert left[0] == left[1] == pytest.approx(10 * (10 ** (1 / 3) - 1), rel=0.01)


@pytest.mark.parametrize(
    "recipe", [Recipe(optimizer="muon", rate=0.02), Recipe(batch=6, rate=2e-3)], ids=["muon", "batch"]
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
    one, again = (train(recipe=recipe, max_steps=300) for _ in range(2))
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
    done = train(tmp_path, milestones=(5e-2, 1e-2), max_steps=420)
    assert not done.reached
    assert done.history[-1].steps == 420  # not a window more
    assert f"Train loss {done.loss:.2e} stopped at the limit of 420 steps after 420 steps" in done.why
    assert done.why.endswith("short of 1e-08.")
    assert done.milestones
    assert all(m.path is not None and m.path.exists() for m in done.milestones)
    assert loss_of(done.network, small_images()) == pytest.approx(done.loss, rel=1e-3)
    assert done.loss <= min(p.averaged for p in done.history) * (1 + 1e-6)  # the best, not the last


def test_a_run_that_fell_short_leaves_its_best_weights_until_it_gets_there(tmp_path: Path) -> None:
    short = train(tmp_path, max_steps=420)
    saved = load_checkpoint(tmp_path / BEST)
    assert loss_of(saved.network, small_images()) == pytest.approx(short.loss, rel=1e-3)
    assert (saved.about["loss"], saved.about["milestone"], saved.about["steps"]) == (short.loss, None, 420)
    assert train(tmp_path).reached
    assert not (tmp_path / BEST).exists()


def test_a_pause_is_no_limit(tmp_path: Path) -> None:
    """Stopped for now, the rate did not fall for it, and the same call goes on."""
    recipe = replace(RECIPE, fall=10**6, finish_from=None)
    first = train(tmp_path, until=1e-5, recipe=recipe, pause_after=0.2)
    assert first.why.startswith(f"Train loss {first.loss:.2e} paused after")
    assert first.history[-1].rate > 0.99 * RECIPE.rate
    assert not (tmp_path / BEST).exists()
    again = train(tmp_path, until=1e-12, recipe=recipe, pause_after=0.2)
    assert again.history[-1].steps > first.history[-1].steps


def test_asked_to_stop_it_does_after_the_step_and_goes_on_from_there(tmp_path: Path) -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 230

    first = train(tmp_path, stop=stop)
    assert first.why.startswith(f"Train loss {first.loss:.2e} interrupted after")
    assert 200 < first.history[-1].steps < 250
    assert not (tmp_path / BEST).exists()
    resumed = train(tmp_path)
    assert resumed.reached
    assert any(f"step {first.history[-1].steps}] resumed" in line for line in resumed.log)


def test_the_log_is_a_file_too(tmp_path: Path) -> None:
    done = train(tmp_path)
    assert (tmp_path / "log.txt").read_text().splitlines() == done.log


def test_at_the_time_limit_too() -> None:
    done = train(max_seconds=0.1, until=1e-12, recipe=Recipe(finish_from=None))
    assert "stopped at the limit of 0.1 s" in done.why
    assert 0.1 <= done.history[-1].seconds < 5


@pytest.mark.parametrize("limit", [{"max_steps": 0}, {"max_seconds": 0}])
def test_a_limit_of_nothing_is_a_limit(limit: dict[str, int]) -> None:
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


# Never be lost: each accident happens for real, and is noticed, acted on and told in plain words.


def test_divergence_from_an_absurd_rate() -> None:
    done = train(recipe=Recipe(rate=1.0), until=1e-2, milestones=(), max_steps=20_000)
    assert said(done, "divergence at")
    assert said(done, "back to the best weights, rate cut to")
    assert done.reached, done.log


def test_nothing_worse_than_the_start_is_ever_taken_for_the_best() -> None:
    done = train(recipe=Recipe(rate=30.0), max_steps=100)
    assert min(p.averaged for p in done.history) > 1e3  # all of it diverged
    assert done.loss == pytest.approx(loss_of(small_network(), small_images()), rel=1e-6)


def test_nan_in_the_middle() -> None:
    """Weights turned to NaN by a fault: back to the best weights, and on to the goal."""

    def sabotage(progress: Progress) -> None:
        if progress.point.steps == 300:
            with torch.no_grad():
                network.net[1].weight[0, 0] = math.nan

    network = small_network()
    done = train(network=network, report=sabotage, until=1e-4)
    (line,) = said(done, "divergence at nan: back to the best weights")
    assert "step 350" in line
    assert "rate cut to 1.0e-03" in line
    assert done.reached


def test_a_spike() -> None:
    """Weights thrown off far: the loss jumps, and the run goes back to where it was best."""

    def sabotage(progress: Progress) -> None:
        if progress.point.steps == 700:
            best.append(progress.point.loss)
            with torch.no_grad():
                network.net[-2].bias.add_(3.0)

    best: list[float] = []
    network = small_network()
    done = train(network=network, report=sabotage, until=1e-6)
    (line,) = said(done, "spike at")
    assert "back to the best weights, rate cut to 1.0e-03" in line
    after = next(p for p in done.history if p.steps == 800)
    assert after.averaged < best[0]
    assert done.reached


def test_a_spike_at_the_end_of_a_window_is_never_taken_for_the_best() -> None:
    """The mean over a window may be low while the weights it ends with are lost."""
    made = run_module.Run(small_network(), small_images(), RECIPE, None, torch.device("cpu"))
    made.wanted, limits = [1e-8], run_module.Limits()
    for _ in range(4):
        _, here = made._window(0.0, limits, lambda: False)
    before = here.loss
    step, calls = made.stepper._step, []

    def thrown_off() -> None:
        step()
        calls.append(1)
        if len(calls) == 50:
            with torch.no_grad():
                made.stepper.weights[-1].add_(1.0)

    made.stepper._step = thrown_off  # type: ignore[method-assign]
    point, here = made._window(0.0, limits, lambda: False)
    assert point.loss < before  # all fifty losses were fine
    assert here.loss == pytest.approx(point.averaged)
    assert here.weights is made.stepper.average


def test_looks_are_rarer_later_but_for_near_a_milestone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "LOOKS", 4)
    far = train(until=1e-12, milestones=(), max_steps=1000).history
    assert [p.steps for p in far[:8]] == [50, 100, 150, 200, 250, 312, 390, 487]
    monkeypatch.setattr(run_module, "NEAR", 1e12)
    assert [p.steps for p in train(until=1e-12, milestones=(), max_steps=400).history] == list(range(50, 401, 50))


def test_a_limit_of_seconds_ends_a_window_of_slow_steps() -> None:
    class Slow(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            time.sleep(0.05)
            return super().forward(x)

    began = time.monotonic()
    done = train(network=Slow(small_network()), max_seconds=0.3)
    assert time.monotonic() - began < 2  # fifty steps would take 2.5 s
    assert 1 <= done.history[-1].steps < 20


@pytest.mark.parametrize(("limit", "rises"), [(150, False), (1000, True)])
def test_a_rate_that_fell_goes_up_again_where_there_is_time(limit: int, rises: bool) -> None:
    learns_at_once = FullyConnected((1, 8, 8), layers=4, width=64)
    done = train(network=learns_at_once, recipe=replace(RECIPE, fall=100, finish_from=None), max_steps=limit)
    assert any("goes up again" in line for line in done.log) == rises
    later = [p.rate for p in done.history if p.steps > 100]
    assert (max(later) > 0.1 * RECIPE.rate) == rises


class Stuck(nn.Module):
    """Cannot do better than a constant, whatever its weights are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(0 * x.flatten(1)).view_as(x)


def test_a_network_that_outputs_a_constant() -> None:
    done = train(network=Stuck(), max_steps=2600, recipe=Recipe(rate=0.02))
    lines = said(done, "the output collapsed: hardly better than a constant one")
    assert len(lines) >= 2
    assert all("started again from other weights" in line for line in lines)
    assert not done.reached
    assert done.loss == pytest.approx(run_module._constant_loss(small_images().pixels), rel=0.1)


def test_a_collapse_that_other_weights_get_out_of(tmp_path: Path) -> None:
    """With all weights zero only the last bias has a gradient: a constant output for ever, until it starts again."""
    network = small_network()
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
    done = train(tmp_path, network=network, until=1e-4)
    assert len(said(done, "the output collapsed")) == 1
    assert load_checkpoint_about(tmp_path / "loss-1e-04.safetensors")["restarted_from"]["seed"] == 43
    assert done.reached, done.log
    assert "started again from other weights (seed 43)" in said(done, "the output collapsed")[0]
    assert done.restarted_from == {"seed": 43, "scale": 1.0, "restarts": 1}
    assert train(max_steps=50).restarted_from is None


def test_a_collapse_is_noticed_within_a_short_fall() -> None:
    network = small_network()
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
    done = train(network=network, recipe=replace(RECIPE, fall=900), max_steps=1800)
    (line,) = said(done, "the output collapsed")
    steps = int(line.split("step ")[1].split("]")[0])
    assert steps < 900
    after = next(p for p in done.history if p.steps > steps)
    assert after.rate > 0.5 * RECIPE.rate  # its fall has begun anew, as far as the limit allows


def test_the_time_left_along_a_fall_is_that_of_the_fall() -> None:
    reports: list[Progress] = []
    recipe = Recipe("muon", rate=0.02, fall=600, finish_from=None)
    train(network=FullyConnected((1, 8, 8), layers=4, width=64), recipe=recipe, max_steps=600, report=reports.append)
    limits, seen = Limits(steps=600), 0
    for progress in reports[:-1]:
        if progress.next_milestone:
            history = [p.point for p in reports[: reports.index(progress) + 1]]
            assert progress.seconds_left == time_left(Fall(600), history, progress.next_milestone, limits)
            seen += progress.seconds_left is not None
    assert seen > 4


def test_a_later_limit_raises_the_rate_and_that_is_no_spike(tmp_path: Path) -> None:
    network, recipe = FullyConnected((1, 8, 8), layers=4, width=64), Recipe("muon", rate=0.02, fall=10_000)
    recipe = replace(recipe, finish_from=None)
    first = train(tmp_path, network=network, until=1e-30, recipe=recipe, max_steps=600)
    again = train(tmp_path, network=network, until=1e-30, recipe=recipe, max_steps=1500)
    after = next(p for p in again.history if p.steps > 600)
    assert after.rate > 10 * first.history[-1].rate
    assert after.best > 30 * first.history[-1].best, "the test asks for a loss that rises much"
    assert not said(again, "spike")


def test_the_rise_of_a_rate_is_no_spike() -> None:
    """It goes up by itself when a fall was not enough; what the loss does then is no accident."""
    network, recipe = FullyConnected((1, 8, 8), layers=4, width=64), Recipe("muon", rate=0.02, fall=600)
    done = train(network=network, until=1e-30, recipe=replace(recipe, finish_from=None), max_steps=1300)
    assert said(done, "goes up again")
    after = next(p for p in done.history if p.steps > 600)
    before = [p for p in done.history if p.steps <= 600][-1]
    assert after.best > 30 * before.best, "the test asks for a loss that rises much"
    assert not said(done, "spike")


def test_one_image_alone_is_learned() -> None:
    """Its mean image is itself: nothing may be taken for a collapse."""
    done = train(images=small_images(1), max_steps=5000)
    assert done.reached, done.log
    assert not said(done, "collapsed")


def test_a_plateau_cuts_the_rate() -> None:
    """Twelve hidden units cannot hold twenty images: the loss stays where it is."""
    network = FullyConnected((1, 8, 8), layers=2, width=12)
    done = train(network=network, max_steps=3000, recipe=Recipe(rate=3e-2))
    lines = said(done, "plateau at")
    assert lines
    assert "back to the averaged weights, rate cut to 1.5e-02" in lines[0]
    assert done.history[-1].rate < 3e-2
    assert not done.reached
    assert done.loss < 0.5 * run_module._constant_loss(small_images().pixels)


def test_without_any_limit_it_still_ends() -> None:
    """Weights that are NaN from the start help nobody: the rate falls to nothing, and that is said."""
    network = small_network()
    with torch.no_grad():
        network.net[1].weight.fill_(math.nan)
    done = train(network=network)
    assert not done.reached
    assert "too small to change float32 weights" in done.why
    assert "Train loss nan" in done.why


def test_the_default_recipe_fits_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Recipe] = []
    monkeypatch.setattr(run_module.Run, "train", lambda self, *rest: seen.append(self.recipe))
    for network in (small_network(), UNet(channels=1, widths=(4, 8))):
        train_to_loss(network, small_images(), device="cpu")
    assert [recipe.optimizer for recipe in seen] == ["adam", "muon"]
