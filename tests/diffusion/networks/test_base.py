import json

import pytest
import torch

from recollect import InputError
from recollect.diffusion.networks import Residual, UNet, build, describe, network_for


@pytest.mark.parametrize("network", [UNet((3, 8, 12), (16, 32, 32)), Residual((3, 8, 12), 24, 2)])
def test_one_noise_level_serves_all_images_and_each_image_may_have_its_own(network: UNet | Residual) -> None:
    for values in network.parameters():
        torch.nn.init.normal_(values, std=0.1)
    x = torch.rand(3, 3, 8, 12)
    with torch.no_grad():
        shared, each = network(x, torch.tensor([0.3])), network(x, torch.full((3,), 0.3))
        other = network(x, torch.tensor([0.3, 0.3, -0.5]))
    assert shared.shape == x.shape
    assert torch.allclose(shared, each, atol=1e-5)
    assert torch.allclose(shared[:2], other[:2], atol=1e-5)
    assert not torch.allclose(shared[2], other[2], atol=1e-3)


def test_a_description_builds_the_same_network_without_memory() -> None:
    network = network_for("unet", (1, 8, 8), 3, widths=(16, 32))
    again = build(describe(network))
    assert {w.device.type for w in again.parameters()} == {"meta"}
    assert {k: v.shape for k, v in again.state_dict().items()} == {k: v.shape for k, v in network.state_dict().items()}


def test_the_first_weights_are_the_seeds_and_leave_the_callers_draws_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (network_for("residual", (1, 4, 4), seed, width=8).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not all(torch.equal(first[k], other[k]) for k in first)


def test_a_network_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="There is no denoising network 'tree'"):
        network_for("tree", (3, 8, 8), 0)


@pytest.mark.parametrize(
    "description",
    ["", "[]", "{}", '{"kind": "tree"}', json.dumps({"kind": "unet", "shape": [3, 8, 8], "widths": [16] * 99}),
     json.dumps({"kind": "residual", "shape": [3, 8, 8], "blocks": 10**9}),
     json.dumps({"kind": "residual", "shape": [3, 8, 8], "other": 3})],
)  # fmt: skip
def test_a_description_that_does_not_work_is_refused(description: str) -> None:
    with pytest.raises(InputError, match=r"that it describes cannot be built: .*[^.]\.$"):
        build(description)
