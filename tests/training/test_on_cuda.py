"""The captured step on a CUDA device; run by make test-gpu."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images, UNet
from recollect.checkpoints import load_checkpoint, load_checkpoint_about
from recollect.devices.precision import float32_precision
from recollect.training import Recipe, train_to_loss
from recollect.training.stepper import Stepper
from tests.training.small import loss_of, small_images, small_network

pytestmark = pytest.mark.gpu

RECIPES = [Recipe(), Recipe(optimizer="muon", rate=0.01, weight_decay=0.5), Recipe(batch=6)]
each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=["adam", "muon", "batch"])


def colour_images(count: int = 8) -> Images:
    return Images(torch.rand(count, 3, 16, 16, generator=torch.Generator().manual_seed(0)))


def make(recipe: Recipe, **options: bool) -> Stepper:
    return Stepper(small_network().cuda(), small_images().pixels.cuda(), recipe, **options)


def tensors_of(stepper: Stepper) -> list[Tensor]:
    """Copies of the weights and of their average."""
    return [t.detach().clone() for t in (*stepper.weights, *stepper.average)]


@each_recipe
def test_a_captured_window_is_its_eager_steps(recipe: Recipe) -> None:
    captured, eager = make(recipe), make(recipe, use_cuda_graph=False)
    for stepper in (captured, eager):
        stepper.forward_precision = "ieee"
    assert captured.run(10) == pytest.approx(eager.run(10), rel=1e-2)
    for a, b in zip(captured.weights, eager.weights, strict=True):
        assert float((a - b).detach().abs().max()) < 1e-2


@each_recipe
def test_capturing_leaves_weights_average_and_optimizer_alone(recipe: Recipe) -> None:
    stepper = make(recipe)
    before = tensors_of(stepper)
    stepper.capture()
    assert all(torch.equal(a, b) for a, b in zip(before, tensors_of(stepper), strict=True))
    assert all(not t.any() for t in stepper.optimizer.state().values())
    stepper.run(3)
    state, before = {name: t.clone() for name, t in stepper.optimizer.state().items()}, tensors_of(stepper)
    stepper.horizon *= 2  # takes another graph
    stepper.capture()
    assert all(torch.equal(a, b) for a, b in zip(before, tensors_of(stepper), strict=True))
    assert all(torch.equal(t, state[name]) for name, t in stepper.optimizer.state().items())


class ReadsBack(nn.Module):
    """Asks the host for a value, once it is told to: such a step cannot be captured."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.asks = small_network(), False

    def forward(self, x: Tensor) -> Tensor:
        if self.asks and torch.cuda.is_current_stream_capturing():
            float(x.mean())
        return self.network(x)


def test_a_capture_that_fails_leaves_weights_average_and_optimizer_alone() -> None:
    network = ReadsBack().cuda()
    stepper = Stepper(network, small_images().pixels.cuda(), Recipe())
    stepper.run(3)
    state, before = {name: t.clone() for name, t in stepper.optimizer.state().items()}, tensors_of(stepper)
    network.asks, stepper.horizon = True, 7
    with pytest.raises(RuntimeError):
        stepper.run(1)
    assert all(torch.equal(a, b) for a, b in zip(before, tensors_of(stepper), strict=True))
    assert all(torch.equal(t, state[name]) for name, t in stepper.optimizer.state().items())
    network.asks = False
    stepper.run(1)


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
    recipe = Recipe(rate=2e-3, tf32_until=1e-2, average_steps=20)
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


def test_the_plain_recipe_takes_every_step_in_float32() -> None:
    done = train_to_loss(small_network(), small_images(), 1e-9, recipe=Recipe.plain(), device="cuda", max_steps=100)
    assert [(s["forward"], s["backward"]) for s in done.precision] == [("float32", "float32")]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_channels_last_network_is_resumed(optimizer: str, tmp_path: Path) -> None:
    """Files know no memory format: moments and average are restored in that of the weights."""
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
