import pytest
import torch
from torch import nn

from recollect import InputError, UNet


def convolutions(network: nn.Module) -> list[nn.Conv2d]:
    return [module for module in network.modules() if isinstance(module, nn.Conv2d)]


@pytest.mark.parametrize("name", ["lrelu", "prelu", "softplus"])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (12, 20)])
def test_it_keeps_the_shape(name: str, skip: bool, size: tuple[int, int]) -> None:
    x = torch.rand(2, 3, *size)
    assert UNet(widths=(4, 6, 8), activation=name, skip=skip)(x).shape == x.shape


def test_it_has_the_stages_of_the_paper() -> None:
    network = UNet()
    layers = convolutions(network)
    stages = [64, 128, 256, 512, 256, 128, 64]
    assert [layer.out_channels for layer in layers] == [width for width in stages for _ in range(2)] + [3]
    assert len([module for module in network.modules() if isinstance(module, nn.LeakyReLU)]) == len(layers)
    assert {(layer.kernel_size, layer.stride, layer.padding) for layer in layers} == {((3, 3), (1, 1), (1, 1))}


def test_without_skips_everything_passes_the_latent() -> None:
    """Cut the latent, and the output forgets the input; with skips it does not."""
    a, b = 1000 * torch.rand(2, 1, 3, 8, 8)
    for skip in (False, True):
        network = UNet(widths=(4, 6, 8), skip=skip)
        network.down[-1].register_forward_hook(lambda module, given, out: torch.zeros_like(out))
        assert torch.equal(network(a), network(b)) is not skip


def test_the_images_decide_the_channels() -> None:
    assert UNet.for_images((1, 8, 8), widths=(4, 6)).settings["channels"] == 1


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_papers_settings(noise: float) -> None:
    assert UNet(widths=(4, 6)).paper_settings(noise) == (1.0, "all_erased")


def test_bad_settings_and_images_are_refused() -> None:
    with pytest.raises(InputError, match=r"There is no activation 'gelu'; choose from lrelu, prelu, softplus"):
        UNet(activation="gelu")
    with pytest.raises(InputError, match=r"channels and widths of 1 or more, got 3 and \(4, 0\)"):
        UNet(widths=(4, 0))
    with pytest.raises(InputError, match=r"needs sides that are multiples of 4; the images are 8x10"):
        UNet(widths=(4, 6, 8))(torch.zeros(1, 3, 8, 10))
