import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


@pytest.mark.parametrize("layers", [2, 10, 20])
@pytest.mark.parametrize(("name", "kind"), [("lrelu", nn.LeakyReLU), ("prelu", nn.PReLU)])
def test_an_activation_stands_between_each_pair(layers: int, name: str, kind: type[nn.Module]) -> None:
    network = FullyConnected((3, 4, 4), layers=layers, width=16, activation=name)
    assert len([module for module in network.modules() if isinstance(module, kind)]) == layers - 1
    assert [layer.out_features for layer in linear_layers(network)] == [16] * (layers - 1) + [48]
    x = torch.rand(5, 3, 4, 4)
    assert network(x).shape == x.shape


def test_the_last_hidden_layer_may_have_a_width_of_its_own() -> None:
    network = FullyConnected((3, 4, 4), layers=4, width=16, last_width=100)
    assert [layer.out_features for layer in linear_layers(network)] == [16, 16, 100, 48]
    again = FullyConnected(**network.settings)
    assert torch.equal(again(torch.ones(1, 3, 4, 4)), network(torch.ones(1, 3, 4, 4)))
    assert "last_width" not in FullyConnected((3, 4, 4)).settings  # descriptions of most networks stay the same
    with pytest.raises(InputError, match="width 16 and 0"):
        FullyConnected((3, 4, 4), width=16, last_width=0)


def test_each_prelu_has_its_own_slope() -> None:
    network = FullyConnected((1, 2, 2), layers=4, width=3, activation="prelu")
    assert len({id(module.weight) for module in network.modules() if isinstance(module, nn.PReLU)}) == 3


@pytest.mark.parametrize(
    ("layers", "activation", "noise", "gamma"),
    [(10, "lrelu", 0.0, 0.5), (10, "lrelu", 0.01, 0.1), (20, "lrelu", 0.0, 0.1), (10, "prelu", 0.0, 0.1)],
)
def test_the_papers_settings(layers: int, activation: str, noise: float, gamma: float) -> None:
    network = FullyConnected((1, 2, 2), layers=layers, width=2, activation=activation)
    assert network.paper_settings(noise) == (gamma, "half_kept")


def test_bad_settings_and_images_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least 2 layers, got 1"):
        FullyConnected((1, 2, 2), layers=1)
    with pytest.raises(InputError, match=r"got \(\) and width 1024"):
        FullyConnected(())
    with pytest.raises(InputError, match=r"got a int and width 1024"):
        FullyConnected(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes images of 1x2x2; these are 1x3x2"):
        FullyConnected((1, 2, 2), layers=2, width=3)(torch.zeros(1, 1, 3, 2))


def test_dropout_comes_after_every_activation_and_only_in_training() -> None:
    network = FullyConnected((1, 4, 4), layers=4, width=8, dropout=0.5)
    assert sum(isinstance(m, nn.Dropout) for m in network.net) == 3
    assert isinstance(network.net[-2], nn.Linear)
    x = torch.rand(2, 1, 4, 4)
    assert not torch.equal(network(x), network(x))
    assert torch.equal(network.eval()(x), FullyConnected((1, 4, 4), layers=4, width=8)(x))
    assert network.settings["dropout"] == 0.5
    with pytest.raises(InputError, match="Dropout is a probability, 0 or more and below 1; got 1"):
        FullyConnected((1, 4, 4), dropout=1)
