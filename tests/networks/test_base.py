from collections.abc import Callable

import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError, UNet
from recollect.networks import NETWORKS, SHRINK, Network, initialise


def weights(network: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def test_every_network_says_what_it_is() -> None:
    assert list(NETWORKS)[:2] == ["fc", "unet"]
    assert all(network.summary for network in NETWORKS.values())


@pytest.mark.parametrize("kind", [FullyConnected, UNet])
def test_a_network_is_built_for_images_and_again_from_its_settings(kind: type[Network]) -> None:
    network = kind.for_images((3, 8, 8), activation="prelu", seed=7)
    x = torch.rand(2, 3, 8, 8)
    assert network(x).shape == x.shape
    assert network.describe() == {"class": kind.__name__, **network.settings}
    assert torch.equal(kind(**network.settings)(x), network(x))


def test_a_setting_that_a_network_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="The network unet has no setting 'layers'; it has channels, widths, act"):
        UNet.for_images((3, 8, 8), layers=3)


def test_another_network_has_no_settings_of_the_paper() -> None:
    assert Network().paper_settings() is None


@pytest.mark.parametrize(
    "make",
    [lambda seed: FullyConnected((1, 2, 2), layers=3, width=5, seed=seed), lambda seed: UNet(widths=(4, 6), seed=seed)],
)
def test_weights_come_from_the_seed_alone(make: Callable[[int], nn.Module]) -> None:
    one, again, other = (weights(make(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("layers", [10, 20])
def test_a_signal_shrinks_by_as_much_however_deep_the_network_is(layers: int) -> None:
    """PyTorch's own initialisation would leave nothing of it after twenty layers."""
    network, x = FullyConnected((3, 16, 16), layers=layers, width=512), torch.rand(8, 3, 16, 16)
    with torch.no_grad():
        ratio = float(network(x).norm() / x.norm())
    assert SHRINK / 10 < ratio < SHRINK * 10


def test_initialising_again_forgets_everything() -> None:
    network = FullyConnected((1, 2, 2), layers=4, width=5, activation="prelu", seed=3)
    before = weights(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(7.0)
    initialise(network, 3)
    assert torch.equal(weights(network), before)
    assert all(not module.bias.any() for module in network.modules() if isinstance(module, nn.Linear))
    slopes = [float(module.weight.detach()) for module in network.modules() if isinstance(module, nn.PReLU)]
    assert slopes == [0.25] * 3


def test_without_shrinking_it_is_he_initialisation() -> None:
    network = UNet(widths=(64, 64))
    initialise(network, 0, shrink=1.0)
    layer = next(module for module in network.up.modules() if isinstance(module, nn.Conv2d))
    assert float(layer.weight.detach().std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)


@pytest.mark.parametrize("kind", [FullyConnected, UNet])
def test_the_first_weights_may_be_those_of_pytorch(kind: type[Network]) -> None:
    network = kind.for_images((3, 8, 8), initialisation="pytorch", seed=7)
    assert network.settings["initialisation"] == "pytorch"
    assert "initialisation" not in kind.for_images((3, 8, 8)).settings
    assert torch.equal(weights(kind(**network.settings)), weights(network))
    layer = next(m for m in network.modules() if isinstance(m, (nn.Linear, nn.Conv2d)))
    bound = layer.weight[0].numel() ** -0.5  # PyTorch draws weights and biases uniformly up to this
    assert 0.9 * bound < float(layer.weight.detach().abs().max()) <= bound
    assert layer.bias is not None
    assert float(layer.bias.detach().abs().max()) > 0
    with pytest.raises(InputError, match="no initialisation 'large'; choose from small, pytorch"):
        kind.for_images((3, 8, 8), initialisation="large")
