"""Each accident really happens: it is noticed, acted on, and logged."""

import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected
from recollect.checkpoints import load_checkpoint_about
from recollect.training import Progress, Recipe
from tests.training.small import (
    RECIPE,
    after_calls,
    constant_loss,
    loss_of,
    messages,
    small_images,
    small_network,
    train,
)


def test_divergence_from_an_absurd_rate() -> None:
    network = FullyConnected((1, 8, 8), layers=2, width=64)
    until = 0.85 * constant_loss(small_images())
    done = train(network=network, recipe=Recipe(rate=3.0), until=until, milestones=(), max_steps=5000)
    assert messages(done, "divergence at")
    assert messages(done, "back to the best weights, rate cut to")
    assert done.reached, done.log


def test_without_interventions_it_goes_on_as_it_began() -> None:
    done = train(recipe=Recipe(rate=30.0, interventions=False), max_steps=300)
    assert not messages(done, "divergence at")
    assert {point.rate for point in done.history} == {30.0}
    assert done.loss == pytest.approx(loss_of(small_network(), small_images()), rel=1e-6)  # the best so far


def test_nothing_worse_than_the_start_is_ever_taken_for_the_best() -> None:
    done = train(recipe=Recipe(rate=30.0), max_steps=100)
    assert min(p.averaged for p in done.history) > 1e3  # all of it diverged
    assert done.loss == pytest.approx(loss_of(small_network(), small_images()), rel=1e-6)


def test_nan_in_the_middle() -> None:
    """Weights turned to NaN by a fault: back to the best weights, and on to the goal."""

    def sabotage(progress: Progress) -> None:
        if progress.point.steps == 150:
            with torch.no_grad():
                cast(nn.Linear, network.net[1]).weight[0, 0] = math.nan

    network = small_network()
    done = train(network=network, report=sabotage, until=1e-4)
    (line,) = messages(done, "divergence at nan: back to the best weights")
    assert "step 200" in line
    assert "rate cut to 2.0e-03" in line
    assert done.reached


def test_a_spike() -> None:
    """Weights thrown off far: the loss jumps, and the run goes back to where it was best."""

    def sabotage(progress: Progress) -> None:
        if progress.point.steps == 250:
            best.append(progress.point.loss)
            with torch.no_grad():
                cast(nn.Linear, network.net[-2]).bias.add_(3.0)

    best: list[float] = []
    network = small_network()
    done = train(network=network, report=sabotage, until=1e-6)
    (line,) = messages(done, "spike at")
    assert "back to the best weights, rate cut to 2.0e-03" in line
    after = next(p for p in done.history if p.steps == 350)
    assert after.averaged < best[0]
    assert done.reached


class Stuck(nn.Module):
    """Cannot do better than a constant, whatever its weights are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(0 * x.flatten(1)).view_as(x)


def test_a_network_that_outputs_a_constant() -> None:
    done = train(network=Stuck(), max_steps=2600, recipe=Recipe(rate=0.02))
    lines = messages(done, "the output collapsed: hardly better than a constant one")
    assert len(lines) >= 2
    assert all("started again from other weights" in line for line in lines)
    assert not done.reached
    assert done.loss == pytest.approx(constant_loss(small_images()), rel=0.1)


def test_a_collapse_that_other_weights_get_out_of(tmp_path: Path) -> None:
    """With all weights zero only the last bias has a gradient: a constant output for ever, until it starts again."""
    network = small_network()
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
    done = train(tmp_path, network=network, until=1e-4)
    assert len(messages(done, "the output collapsed")) == 1
    assert load_checkpoint_about(tmp_path / "loss-1e-04.safetensors")["restarted_from"]["seed"] == 43
    assert done.reached, done.log
    assert "started again from other weights (seed 43)" in messages(done, "the output collapsed")[0]
    assert done.restarted_from == {"seed": 43, "scale": 1.0, "restarts": 1}
    assert train(max_steps=50).restarted_from is None


def test_a_collapse_is_noticed_within_a_short_annealing() -> None:
    network = small_network()
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
    done = train(network=network, recipe=replace(RECIPE, anneal_steps=900), max_steps=1800)
    (line,) = messages(done, "the output collapsed")
    steps = int(line.split("step ")[1].split("]")[0])
    assert steps < 900
    after = next(p for p in done.history if p.steps > steps)
    assert after.rate > 0.5 * RECIPE.rate  # the annealing has begun anew, as far as the limit allows


def test_a_later_limit_raises_the_rate_and_that_is_no_spike(tmp_path: Path) -> None:
    network, recipe = FullyConnected((1, 8, 8), layers=4, width=64), Recipe("muon", rate=0.02, anneal_steps=10_000)
    recipe = replace(recipe, solve_below=None)
    first = train(tmp_path, network=network, until=1e-30, recipe=recipe, max_steps=400)
    again = train(tmp_path, network=network, until=1e-30, recipe=recipe, max_steps=1500, stop=after_calls(5))
    after = next(p for p in again.history if p.steps > 400)
    assert after.rate > 10 * first.history[-1].rate
    assert after.best > 30 * first.history[-1].best, "the test asks for a loss that rises much"
    assert not messages(again, "spike")


def test_a_warm_restart_is_no_spike() -> None:
    """The loss rises with the rate, and nothing is done about it."""
    network, recipe = FullyConnected((1, 8, 8), layers=4, width=64), Recipe("muon", rate=0.02, anneal_steps=400)
    recipe = replace(recipe, solve_below=None)
    done = train(network=network, until=1e-30, recipe=recipe, max_steps=2000, stop=after_calls(13))
    assert messages(done, "it restarts")
    after = next(p for p in done.history if p.steps > 400)
    before = [p for p in done.history if p.steps <= 400][-1]
    assert after.best > 30 * before.best, "the test asks for a loss that rises much"
    assert not messages(done, "spike")


def test_one_image_alone_is_learned() -> None:
    """Its mean image is itself: nothing may be taken for a collapse."""
    done = train(images=small_images(1), max_steps=5000)
    assert done.reached, done.log
    assert not messages(done, "collapsed")


def test_a_plateau_cuts_the_rate() -> None:
    """Twelve hidden units cannot hold twenty images: the loss stays where it is."""
    network = FullyConnected((1, 8, 8), layers=2, width=12)
    done = train(network=network, max_steps=1800, recipe=Recipe(rate=3e-2))
    lines = messages(done, "plateau at")
    assert lines
    assert "back to the averaged weights, rate cut to 1.5e-02" in lines[0]
    assert done.history[-1].rate < 3e-2
    assert not done.reached
    assert done.loss < 0.5 * constant_loss(small_images())


def test_without_any_limit_it_still_ends() -> None:
    """With weights that are NaN from the start the rate is cut until it is too small, and the run says so."""
    network = small_network()
    with torch.no_grad():
        cast(nn.Linear, network.net[1]).weight.fill_(math.nan)
    done = train(network=network)
    assert not done.reached
    assert "too small to change float32 weights" in done.why
    assert "Train loss nan" in done.why
