from collections.abc import Callable

import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError, TiedTwoLayer, UNet
from recollect.networks import SHRINK, initialise


def kinds(f: nn.Module, kind: type[nn.Module]) -> list[nn.Module]:
    return [m for m in f.modules() if isinstance(m, kind)]


@pytest.mark.parametrize("layers", [2, 10, 20])
@pytest.mark.parametrize(("name", "kind"), [("lrelu", nn.LeakyReLU), ("prelu", nn.PReLU)])
def test_fully_connected_has_an_activation_between_each_pair(layers: int, name: str, kind: type[nn.Module]) -> None:
    f = FullyConnected((3, 4, 4), layers=layers, width=16, activation=name)
    linear = kinds(f, nn.Linear)
    assert len(linear) == layers
    assert len(kinds(f, kind)) == layers - 1
    assert [m.out_features for m in linear] == [16] * (layers - 1) + [48]
    x = torch.rand(5, 3, 4, 4)
    assert f(x).shape == x.shape


def test_the_last_hidden_layer_may_have_a_width_of_its_own() -> None:
    f = FullyConnected((3, 4, 4), layers=4, width=16, last_width=100)
    assert [m.out_features for m in kinds(f, nn.Linear)] == [16, 16, 100, 48]
    again = FullyConnected(**f.settings)
    assert torch.equal(again(torch.ones(1, 3, 4, 4)), f(torch.ones(1, 3, 4, 4)))
    assert "last_width" not in FullyConnected((3, 4, 4)).settings  # as before there was one
    with pytest.raises(InputError, match="width 16 and 0"):
        FullyConnected((3, 4, 4), width=16, last_width=0)


@pytest.mark.parametrize("name", ["lrelu", "prelu", "softplus"])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (12, 20)])
def test_unet_keeps_the_shape(name: str, skip: bool, size: tuple[int, int]) -> None:
    x = torch.rand(2, 3, *size)
    assert UNet(widths=(4, 6, 8), activation=name, skip=skip)(x).shape == x.shape


def test_unet_has_the_stages_of_the_paper() -> None:
    f = UNet()
    convolutions = kinds(f, nn.Conv2d)
    stages = [64, 128, 256, 512, 256, 128, 64]
    assert [c.out_channels for c in convolutions] == [width for width in stages for _ in range(2)] + [3]
    assert len(kinds(f, nn.LeakyReLU)) == len(convolutions)
    assert {(c.kernel_size, c.stride, c.padding) for c in convolutions} == {((3, 3), (1, 1), (1, 1))}


def test_without_skips_everything_passes_the_latent() -> None:
    """Cut the latent, and the output forgets the input; with skips it does not."""
    a, b = 1000 * torch.rand(2, 1, 3, 8, 8)
    for skip in (False, True):
        f = UNet(widths=(4, 6, 8), skip=skip)
        f.down[-1].register_forward_hook(lambda module, given, out: torch.zeros_like(out))
        assert torch.equal(f(a), f(b)) is not skip


def test_each_prelu_has_its_own_slope() -> None:
    f = FullyConnected((1, 2, 2), layers=4, width=3, activation="prelu")
    assert len({id(m.weight) for m in kinds(f, nn.PReLU)}) == 3


@pytest.mark.parametrize(
    "make",
    [lambda seed: FullyConnected((1, 2, 2), layers=3, width=5, seed=seed), lambda seed: UNet(widths=(4, 6), seed=seed)],
)
def test_weights_come_from_the_seed_alone(make: Callable[[int], nn.Module]) -> None:
    one, again, other = (nn.utils.parameters_to_vector(make(seed).parameters()) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_tied_two_layer_is_its_formula() -> None:
    weight, x = torch.randn(5, 12), torch.rand(4, 3, 2, 2)
    expected = [(weight.T @ torch.tanh(weight @ image.flatten())).view(3, 2, 2) for image in x]
    assert torch.allclose(TiedTwoLayer(weight)(x), torch.stack(expected), atol=1e-5)


def test_bad_networks() -> None:
    with pytest.raises(InputError, match=r"There is no activation 'gelu'; choose from lrelu, prelu, softplus"):
        UNet(activation="gelu")
    with pytest.raises(InputError, match=r"at least 2 layers, got 1"):
        FullyConnected((1, 2, 2), layers=1)
    with pytest.raises(InputError, match=r"needs sides that are multiples of 4; the images are 8x10"):
        UNet(widths=(4, 6, 8))(torch.zeros(1, 3, 8, 10))
    with pytest.raises(InputError, match=r"W is an m x d matrix, got shape \(5,\)"):
        TiedTwoLayer(torch.zeros(5))


@pytest.mark.parametrize("layers", [10, 20])
def test_a_signal_shrinks_by_as_much_however_deep_the_network_is(layers: int) -> None:
    """PyTorch's own initialisation would leave nothing of it after twenty layers."""
    f, x = FullyConnected((3, 16, 16), layers=layers, width=512), torch.rand(8, 3, 16, 16)
    with torch.no_grad():
        ratio = float(f(x).norm() / x.norm())
    assert SHRINK / 10 < ratio < SHRINK * 10


def test_initialising_again_forgets_everything() -> None:
    f = FullyConnected((1, 2, 2), layers=4, width=5, activation="prelu", seed=3)
    before = nn.utils.parameters_to_vector(f.parameters()).detach()
    with torch.no_grad():
        for p in f.parameters():
            p.fill_(7.0)
    initialise(f, 3)
    assert torch.equal(nn.utils.parameters_to_vector(f.parameters()), before)
    assert all(not m.bias.any() for m in kinds(f, nn.Linear))
    assert all(float(m.weight.detach()) == 0.25 for m in kinds(f, nn.PReLU))


def test_without_shrinking_it_is_he_initialisation() -> None:
    f = UNet(widths=(64, 64))
    initialise(f, 0, shrink=1.0)
    layer = f.up[0][0]
    assert float(layer.weight.detach().std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)
