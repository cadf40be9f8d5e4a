import pytest
import torch

from recollect import FullyConnected, InputError, UNet
from recollect.training import Recipe
from recollect.training.private_gradients import PrivateGradients
from recollect.training.stepper import Stepper

SHAPE = (1, 3, 3)


def clipped_one_by_one(network: torch.nn.Module, x: torch.Tensor, clip: float) -> list[torch.Tensor]:
    """Add up the clipped gradients of single images, as the definition has it."""
    weights, total = list(network.parameters()), [torch.zeros_like(w) for w in network.parameters()]
    for image in x.split(1):
        gradients = torch.autograd.grad((network(image) - image).square().mean(), weights)
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        for part, gradient in zip(total, gradients, strict=True):
            part += gradient * min(1.0, clip / float(norm)) / len(x)
    return total


@pytest.mark.parametrize("clip", [1e-4, 0.05, 1e3])  # all, some or none of the images are clipped
def test_gradients_are_those_of_single_images_clipped_and_averaged(clip: float) -> None:
    network, x = FullyConnected(SHAPE, layers=3, width=6), torch.rand(5, *SHAPE)
    private = PrivateGradients(network, clip, 0.0)
    with private.watching():
        loss = (network(x) - x).square().mean()
    private.set(loss, torch.Generator())
    for weight, expected in zip(network.parameters(), clipped_one_by_one(network, x, clip), strict=True):
        torch.testing.assert_close(weight.grad, expected)


def test_noise_has_the_deviation_of_the_recipe() -> None:
    network, x = FullyConnected(SHAPE, layers=3, width=64), torch.rand(4, *SHAPE)
    recipe = Recipe(clip=0.5, noise_multiplier=8.0, average_steps=None)
    Stepper(network, x, recipe).run(1)
    gradient = next(w.grad for w in network.parameters() if w.shape == (64, 64))
    assert gradient is not None
    assert float(gradient.std()) == pytest.approx(8.0 * 0.5 / 4, rel=0.1)


def test_other_networks_and_settings_are_refused() -> None:
    with pytest.raises(InputError, match="networks of linear layers alone"):
        PrivateGradients(UNet(channels=1, widths=(4, 8)), 1.0, 1.0)
    with pytest.raises(InputError, match="needs a clip"):
        Recipe(noise_multiplier=1.0)
    with pytest.raises(InputError, match="a norm above 0"):
        Recipe(clip=0.0)
