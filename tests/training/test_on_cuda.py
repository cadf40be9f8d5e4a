"""The captured step on a CUDA device; run by make test-gpu."""

from pathlib import Path

import pytest
import torch

from recollect import FullyConnected, Images, UNet
from recollect.checkpoints import load_checkpoint, load_checkpoint_about
from recollect.devices.precision import float32_precision
from recollect.training import Recipe, train_to_loss
from recollect.training.stepper import Stepper
from tests.training.small import loss_of, small_images, small_network

pytestmark = pytest.mark.gpu

RECIPES = [Recipe(), Recipe(optimizer="muon", rate=0.01, decay=0.5), Recipe(batch=6)]
each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=["adam", "muon", "batch"])


def colour_images(count: int = 8) -> Images:
    return Images(torch.rand(count, 3, 16, 16, generator=torch.Generator().manual_seed(0)))


def make(recipe: Recipe) -> Stepper:
    return Stepper(small_network().cuda(), small_images().pixels.cuda(), recipe)


@each_recipe
def test_a_captured_window_is_its_eager_steps(recipe: Recipe) -> None:
    captured, eager = make(recipe), make(recipe)
    for stepper in (captured, eager):
        stepper.forward_precision = "ieee"
    loss = captured.run(10)
    eager._log_loss.zero_()
    for _ in range(10):
        if eager._partial:
            eager._draw_batch()
        eager._step()
    assert loss == pytest.approx(float((eager._log_loss / 10).exp()), rel=1e-2)
    for a, b in zip(captured.weights, eager.weights, strict=True):
        assert float((a - b).detach().abs().max()) < 1e-2


@each_recipe
def test_capturing_leaves_weights_average_and_optimizer_alone(recipe: Recipe) -> None:
    stepper = make(recipe)
    if stepper._partial:
        stepper._draw_batch()
    before = [t.detach().clone() for t in (*stepper.weights, *stepper.average)]
    stepper._graph()
    assert all(torch.equal(a, b) for a, b in zip(before, (*stepper.weights, *stepper.average), strict=True))
    assert all(not t.any() for t in stepper.optimizer.state().values())


def test_a_new_rate_reaches_the_captured_step() -> None:
    stepper = make(Recipe())
    stepper.run(5)
    before = [w.detach().clone() for w in stepper.weights]
    stepper.set_rate(0.0)
    stepper.run(5)
    assert all(torch.equal(a, b) for a, b in zip(before, stepper.weights, strict=True))


def test_measuring_is_in_full_float32_whatever_the_caller_set() -> None:
    stepper = make(Recipe())
    with float32_precision("tf32"):
        assert stepper.measure(averaged=False) == pytest.approx(
            loss_of(stepper.network.cpu(), small_images()), rel=1e-5
        )


def test_it_reaches_the_loss_and_records_the_switch_from_tf32(tmp_path: Path) -> None:
    recipe = Recipe(rate=2e-3, tf32_until=1e-2, average=20)
    done = train_to_loss(small_network(), small_images(), 1e-6, recipe=recipe, out=tmp_path, device="cuda")
    assert done.reached, done.log
    steps = load_checkpoint_about(tmp_path / "loss-1e-06.safetensors")["precision"]["steps"]
    assert [(s["forward"], s["backward"]) for s in steps] == [
        ("TF32", "TF32"),
        ("float32 as three TF32 products", "TF32"),
    ]
    assert steps[1]["step"] > 0
    again = load_checkpoint(tmp_path / "loss-1e-06.safetensors")
    assert loss_of(again.network, small_images()) <= 1.01e-6


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_channels_last_network_is_resumed(optimizer: str, tmp_path: Path) -> None:
    """Files know no memory format: moments and average must come back in that of the weights."""
    recipe = Recipe(optimizer=optimizer, rate=2e-3)
    for steps in (100, 200):
        network = UNet(widths=(8, 16))
        done = train_to_loss(
            network, colour_images(), 1e-9, (), recipe=recipe, out=tmp_path, device="cuda", max_steps=steps
        )
    assert done.history[-1].steps == 200
    assert done.history[-1].averaged < done.history[0].averaged


def test_a_wide_network_stays_within_reach_after_capture() -> None:
    network = FullyConnected((3, 16, 16), layers=6, width=256)
    done = train_to_loss(network, colour_images(), 1e-4, (), device="cuda", max_steps=5000)
    assert done.reached, done.log
