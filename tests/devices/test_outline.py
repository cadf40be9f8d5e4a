import torch
from torch import nn

from recollect.devices.outline import outline_within
from recollect.networks import FullyConnected, UNet


def test_an_outline_has_the_shapes_of_the_network_and_no_memory() -> None:
    for build in (lambda: FullyConnected((3, 8, 8), layers=3, width=8), lambda: UNet(widths=(4, 8))):
        network = build()
        outline = outline_within(100, 10**6, build)
        assert outline is not None
        assert all(weight.is_meta for weight in outline.parameters())
        shapes = {name: weight.shape for name, weight in outline.state_dict().items()}
        assert shapes == {name: weight.shape for name, weight in network.state_dict().items()}


def test_far_more_weights_give_none_and_other_errors_pass() -> None:
    assert outline_within(4, 10, lambda: nn.Linear(10**6, 10**6)) is None
    assert outline_within(4, 10**12, lambda: nn.Sequential(*(nn.Linear(1, 1) for _ in range(10**9)))) is None
    assert torch.empty(1).device.type == "cpu"  # the device is as it was
