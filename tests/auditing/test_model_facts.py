from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images
from recollect.auditing.model_facts import damage_moved, describe_model, rounding, train_loss
from recollect.degradation import mask
from recollect.devices.precision import device_of
from recollect.models import open_model
from tests.auditing.making import images
from tests.models.making import Tiny, export
from tests.planted import Memorizer

SOME = images(6, 1)


def network(**more: object) -> FullyConnected:
    return FullyConnected(SOME.shape, **{"layers": 2, "width": 4, **more})  # type: ignore[arg-type]


class InPlace(nn.Module):
    """Overwrites its input, as networks may."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(0.5)


def test_the_loss_is_over_all_images_whatever_the_chunks() -> None:
    f = network()
    with torch.no_grad():
        expected = float((f(SOME.pixels) - SOME.pixels).double().square().mean())
    assert train_loss(f, SOME) == pytest.approx(expected)
    assert train_loss(f, SOME, chunk=4) == pytest.approx(expected)


def test_a_network_that_overwrites_its_input_spoils_nothing() -> None:
    before = SOME.pixels.clone()
    assert train_loss(InPlace(), SOME) == pytest.approx(float((before / 2).double().square().mean()))
    assert torch.equal(SOME.pixels, before)


def test_rounding_is_measured_against_float64_where_there_is_one(tmp_path: Path) -> None:
    found = rounding(network(), SOME)
    assert found is not None
    assert 0 < found < 1e-10
    assert rounding(Memorizer(SOME.pixels), SOME) is None

    exported = open_model(export(Tiny(), tmp_path / "m.pt2", batch=torch.export.Dim.DYNAMIC))
    assert rounding(exported, SOME) is not None  # warnings are errors: that of torch's own copy would hide this

    class Fixed(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.float())

    assert rounding(Fixed(8, 8), SOME) is None  # float32 inside, so float64 weights do not go with it


def test_what_is_recorded_of_a_model() -> None:
    found = describe_model(network(), SOME, deterministic=True)
    assert (found["name"], found["parameters"], found["network"]["layers"]) == ("FullyConnected", 1732, 2)
    assert found["rounding"] is not None
    assert describe_model(network(), SOME, deterministic=False)["rounding"] is None
    adapted = describe_model(open_model(network(), input_range="-1,1"), SOME, deterministic=True)
    assert adapted["name"] == "FullyConnected"
    assert "into" in adapted["adapted"]

    def mine(x: Tensor) -> Tensor:
        return x

    assert describe_model(mine, SOME, deterministic=True)["name"] == "mine"
    assert describe_model(Memorizer(SOME.pixels), SOME, deterministic=True)["name"] == "Memorizer"


def test_how_far_damage_is_moved() -> None:
    half, each = mask("half", SOME.shape), mask("random-each:50%", SOME.shape, count=len(SOME))
    assert damage_moved(lambda x: x, SOME, [half, each]) == 0
    assert damage_moved(lambda x: SOME.pixels, SOME, [half, each]) == pytest.approx(1)
    assert damage_moved(lambda x: 0 * x, SOME, [each]) == pytest.approx(1, abs=0.5)  # all that was kept is lost


def test_erasing_what_is_black_is_no_damage() -> None:
    half = mask("half", SOME.shape)
    black = Images(half.apply(SOME.pixels))
    assert damage_moved(lambda x: x, black, [half]) is None
    assert damage_moved(lambda x: x, black, [half, mask("block", SOME.shape)]) == 0


def test_where_a_model_is() -> None:
    assert device_of(Memorizer(SOME.pixels)) == torch.device("cpu")
    assert device_of(nn.Linear(1, 1, device="meta")) == torch.device("meta")
    assert device_of(nn.Linear(1, 1, device="meta").forward) == torch.device("meta")  # a method of a module
    assert device_of(nn.BatchNorm2d(1, affine=False, device="meta")) == torch.device("meta")  # buffers alone


@pytest.mark.gpu
def test_a_model_on_the_gpu_is_described_with_images_on_the_cpu() -> None:
    found = describe_model(network().cuda(), Images(SOME.pixels), deterministic=True)
    assert found["train_loss"] == pytest.approx(train_loss(network(), SOME), rel=1e-5)
