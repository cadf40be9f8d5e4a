import pytest
import torch
from torch import Tensor, nn

from recollect.training import Recipe
from recollect.training.stepper import Stepper
from tests.training.small import loss_of, small_images, small_network, vector


@pytest.mark.parametrize(
    "recipe", [Recipe(input_noise=0.1), Recipe(shift=1), Recipe(shift=1, input_noise=0.1, batch=5)]
)
def test_noise_and_shifts_are_new_at_every_step_and_the_measured_images_stay(recipe: Recipe) -> None:
    given: list[Tensor] = []
    made, images = Stepper(small_network(), small_images().pixels, recipe), small_images().pixels
    made.network.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].clone()))
    made.run(2)
    assert not torch.equal(given[0], given[1])
    assert torch.equal(made.images, images)
    assert made.measure(averaged=False) == pytest.approx(loss_of(made.network, small_images()), rel=1e-6)


def test_the_target_of_a_noisy_image_is_the_image() -> None:
    made, x = Stepper(small_network(), small_images().pixels, Recipe(input_noise=0.5)), small_images().pixels
    before = vector(made.network)
    loss = made.run(1)
    again = Stepper(small_network(), x, Recipe(input_noise=0.5))
    again.drawn.draw()
    nn.utils.vector_to_parameters(before, again.network.parameters())
    with torch.no_grad():
        assert loss == pytest.approx(float((again.network(again.drawn.given) - x).square().mean()), rel=1e-5)
    noise = (again.drawn.given - x).flatten()
    assert float(noise.std()) == pytest.approx(0.5, rel=0.1)
