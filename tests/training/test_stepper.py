import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from recollect import InputError, UNet
from recollect.devices.precision import float32_precision
from recollect.training import Recipe
from recollect.training.stepper import Stepper
from tests.training.small import loss_of, small_images, small_network, vector


def stepper(recipe: Recipe | None = None, count: int = 20) -> Stepper:
    return Stepper(small_network(), small_images(count).pixels, recipe or Recipe())


def test_without_a_loss_for_tf32_no_pass_on_a_gpu_is_in_it() -> None:
    for recipe, name in ((Recipe(), "TF32"), (Recipe(tf32_until=None), "float32"), (Recipe.plain(), "float32")):
        made = stepper(recipe)
        made.images = cast("Tensor", SimpleNamespace(is_cuda=True))
        assert made.precision()["backward"] == name


def test_a_window_is_adam_step_by_step() -> None:
    """Against torch's plain, unfused Adam on the same network."""
    made, plain, x = stepper(), small_network(), small_images().pixels
    adam = torch.optim.Adam(plain.parameters(), lr=1e-3, betas=(0.9, 0.99))
    logs = []
    for _ in range(10):
        loss = (plain(x) - x).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        logs.append(math.log(float(loss.detach())))
    assert made.run(10) == pytest.approx(math.exp(sum(logs) / 10), rel=1e-4)  # the geometric mean
    assert torch.allclose(vector(made.network), vector(plain), atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_average_forgets_over_its_horizon_also_when_that_changes(device: str) -> None:
    made = Stepper(small_network().to(device), small_images().pixels.to(device), Recipe(average_steps=4))
    average = [w.detach().clone() for w in made.weights]
    for horizon in (4, 4, 4, 2, 2, 16):
        made.horizon = horizon
        made.run(1)
        average = [a + (w.detach() - a) / horizon for a, w in zip(average, made.weights, strict=True)]
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(average, made.average, strict=True))


def test_measure_is_the_loss_over_all_images() -> None:
    made, images = stepper(Recipe(batch=5)), small_images()
    made.run(20)
    own = vector(made.network)
    assert made.measure(averaged=False) == pytest.approx(loss_of(made.network, images), rel=1e-6)
    assert made.measure(averaged=False, chunk=7) == pytest.approx(made.measure(averaged=False), rel=1e-6)
    averaged = made.measure(averaged=True)
    assert torch.equal(vector(made.network), own)  # measuring the average leaves the weights alone
    with made.using(made.average):
        assert averaged == pytest.approx(loss_of(made.network, images), rel=1e-6)


def test_other_weights_are_used_for_a_while_only() -> None:
    made = stepper()
    own = vector(made.network)
    zeros = [torch.zeros_like(w) for w in made.weights]
    with made.using(zeros):
        assert not vector(made.network).any()
    assert torch.equal(vector(made.network), own)
    with pytest.raises(ZeroDivisionError), made.using(zeros):
        raise ZeroDivisionError
    assert torch.equal(vector(made.network), own)


def test_batches_are_shuffled_passes_over_the_set() -> None:
    seen: list[Any] = []
    made = stepper(Recipe(batch=5))

    def note(_: nn.Module, inputs: tuple[Tensor]) -> None:
        seen.extend(int((made.images == image).flatten(1).all(1).nonzero()) for image in inputs[0])

    made.network.register_forward_pre_hook(note)
    made.run(8)
    assert sorted(seen[:20]) == sorted(seen[20:]) == list(range(20))
    assert seen[:20] != seen[20:]


def test_a_batch_larger_than_the_set_is_the_set() -> None:
    whole, larger = stepper(), stepper(Recipe(batch=50))
    assert whole.run(5) == larger.run(5)
    assert torch.equal(vector(whole.network), vector(larger.network))


def test_losses_that_are_not_finite() -> None:
    made = stepper()
    with torch.no_grad():
        made.weights[0].fill_(math.nan)
    assert math.isnan(made.run(2))
    assert math.isnan(made.measure(averaged=False))


def test_a_perfect_fit_is_a_loss_of_zero() -> None:
    """Its logarithm is not finite, yet nothing diverged."""
    made = Stepper(small_network(), torch.zeros(3, 1, 8, 8), Recipe())
    made.set_weights([torch.zeros_like(w) for w in made.weights])
    assert made.run(3) == 0.0


def test_restart_forgets_moments_and_average() -> None:
    made = stepper()
    made.run(20)
    made.restart(5e-4)
    assert made.rate == 5e-4
    assert made.optimizer.state() == {}
    assert all(torch.equal(a, w) for a, w in zip(made.average, made.weights, strict=True))


def test_precision_in_words_and_left_as_it_was() -> None:
    made = stepper()
    with float32_precision("tf32"):
        made.run(2)
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert made.precision() == {"forward": "float32", "backward": "float32"}
    assert stepper(Recipe(optimizer="muon")).precision()["orthogonal"] == "float32"


def test_muon_trains_convolutions() -> None:
    made = Stepper(UNet(channels=1, widths=(4, 8)), small_images(4).pixels, Recipe(optimizer="muon", rate=0.02))
    first = made.measure(averaged=False)
    made.run(60)
    assert made.measure(averaged=False) < 0.7 * first


def test_decay_shrinks_matrices_and_leaves_vectors_alone() -> None:
    """Without a gradient only the decay is left: a factor for each step, at the rate of that step."""
    made = Stepper(UNet(channels=1, widths=(4, 8)), torch.zeros(2, 1, 8, 8), Recipe(rate=0.1, weight_decay=2.0))
    before = [w.detach().clone() for w in made.weights]
    made.run(2)
    made.set_rate(0.05)
    made.run(1)
    for w, was in zip(made.weights, before, strict=True):
        assert torch.allclose(w, was * 0.8**2 * 0.9 if w.ndim >= 2 else was, atol=1e-7)


def test_decay_bounds_the_weights_of_muon() -> None:
    """An orthogonal update has norm 1 (1.2 by Newton-Schulz), so no matrix outgrows 1 / decay by much."""
    recipe = Recipe(optimizer="muon", rate=0.05, weight_decay=2.0)
    made = Stepper(UNet(channels=1, widths=(4, 8)), small_images(4).pixels, recipe)
    made.run(100)
    norms = [float(torch.linalg.matrix_norm(w.detach().flatten(1), 2)) for w in made.weights if w.ndim >= 2]
    assert max(norms) < 1.3 / 2.0


class WithSpareLayer(nn.Module):
    """A small network beside a layer of the same shape that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.own = small_network()
        self.spare = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.own(x)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_what_is_unused_or_frozen_stays_as_it_is_and_the_rest_is_trained(optimizer: str) -> None:
    network, recipe = WithSpareLayer(), Recipe(optimizer, rate=1e-3, weight_decay=0.5)
    first, *others = network.own.parameters()
    first.requires_grad_(False)
    still = [first, *network.spare.parameters()]
    before = [[w.detach().clone() for w in some] for some in (still, others)]
    Stepper(network, small_images().pixels, recipe).run(5)
    assert all(torch.equal(w, was) for w, was in zip(still, before[0], strict=True))
    assert not any(torch.equal(w, was) for w, was in zip(others, before[1], strict=True))


def test_an_unused_layer_does_not_change_how_the_others_are_trained() -> None:
    recipe = Recipe("muon", rate=0.02, weight_decay=0.2)
    alone, beside = (Stepper(n, small_images().pixels, recipe) for n in (small_network(), WithSpareLayer()))
    alone.run(5)
    beside.run(5)
    assert torch.allclose(vector(alone.network), vector(beside.network)[: -64 * 65], atol=1e-7)


def test_nothing_to_train() -> None:
    images = small_images().pixels
    with pytest.raises(InputError, match="nothing to train in Identity: it has no parameters"):
        Stepper(nn.Identity(), images, Recipe())
    with pytest.raises(InputError, match="nothing to train in FullyConnected: every parameter is frozen"):
        Stepper(small_network().requires_grad_(False), images, Recipe())
    spare_alone = WithSpareLayer()
    spare_alone.own.requires_grad_(False)
    with pytest.raises(InputError, match="its output depends on no trainable parameter"):
        Stepper(spare_alone, images, Recipe()).run(1)


def test_without_an_average_the_weights_are_their_own() -> None:
    made = stepper(Recipe(average_steps=None))
    made.run(3)
    assert all(torch.equal(a, w) for a, w in zip(made.average, made.weights, strict=True))


@pytest.mark.gpu
def test_a_step_with_noise_and_shifts_on_a_gpu_is_that_of_a_cpu_in_kind() -> None:
    recipe = Recipe(shift=1, input_noise=0.1, batch=5)
    made = Stepper(small_network().cuda(), small_images().pixels.cuda(), recipe)
    losses = [made.run(1) for _ in range(20)]
    assert len(set(losses)) == 20
    assert losses[-1] < losses[0]
