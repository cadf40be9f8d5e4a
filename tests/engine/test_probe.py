"""What a first call shows of a network."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, UNet
from recollect.engine.probe import RefuseToWait, Waits, probe_network

gpu = pytest.mark.gpu
SHAPE = (3, 16, 16)


class Clamping(nn.Module):
    """Changes its input without a change of version."""

    def forward(self, x: Tensor) -> Tensor:
        return x.data.clamp_(0, 1) / 2


@pytest.mark.parametrize(("value", "changes"), [(0.5, False), (1.5, True)])
def test_a_change_of_the_input_is_seen(value: float, changes: bool) -> None:
    images = torch.full((2, *SHAPE), value)
    probe = probe_network(Clamping(), images)
    assert probe.changes_input is changes
    assert torch.equal(probe.images, torch.full_like(images, value))
    assert torch.equal(probe.outputs, torch.full_like(images, min(value, 1) / 2))
    assert not probe.waits


@gpu
def test_what_the_host_waits_for_is_named_and_the_outputs_are_there() -> None:
    images = torch.rand(2, *SHAPE, device="cuda")
    probe = probe_network(lambda x: x / x.max().item(), images)
    assert "_local_scalar_dense" in probe.waits
    assert torch.equal(probe.outputs, images / images.max().item())
    assert not probe_network(lambda x: x / x.max(), images).waits
    assert not probe_network(lambda x: x / x.max().item(), images, may_wait=False).waits


WAITING: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x / x.max().item(),
    "if": lambda x: x if x.sum() > 0 else -x,
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0.5],
    "equal": lambda x: torch.equal(x, x + 1),
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("name", WAITING)
def test_reading_a_value_back_is_noticed(name: str) -> None:
    with pytest.raises(Waits), RefuseToWait():
        WAITING[name](torch.rand(4, 4))


@pytest.mark.parametrize("kind", ["lrelu", "prelu", "softplus", "unet"])
def test_the_networks_of_the_paper_read_nothing_back(kind: str) -> None:
    f = UNet(widths=(8, 16)) if kind == "unet" else FullyConnected(SHAPE, layers=4, width=64, activation=kind)
    x = torch.rand(2, *SHAPE)
    with RefuseToWait(), torch.no_grad():
        f(x)
        torch.addcmul(x, x, x, out=torch.empty_like(x))
        x[:1].clone().copy_(x[1:])


@gpu
def test_copies_to_the_host_are_noticed() -> None:
    x = torch.rand(3, device="cuda")
    for move in (Tensor.cpu, lambda x: x.copy_(torch.zeros(3)), lambda x: torch.zeros(3).cuda()):
        with pytest.raises(Waits), RefuseToWait():
            move(x)
