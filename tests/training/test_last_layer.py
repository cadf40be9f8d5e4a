import pickle

import pytest
import torch
from torch import nn

from recollect import FullyConnected, UNet
from recollect.training.last_layer import can_solve, last_linear, solve_last_layer
from tests.training.small import loss_of, small_images, small_network, vector


@pytest.mark.parametrize("count", [1, 20, 40])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_share_of_the_change_takes_the_loss_to_its_square(count: int, share: float) -> None:
    network, images = small_network(layers=2), small_images(count)
    before = loss_of(network, images)
    solution = solve_last_layer(network, images.pixels)
    assert solution is not None
    solution.apply(share)
    assert loss_of(network, images) == pytest.approx((1 - share) ** 2 * before, rel=1e-2)


def test_all_of_it_is_a_perfect_fit() -> None:
    network, images = small_network(layers=2), small_images(40)
    solution = solve_last_layer(network, images.pixels)
    assert solution is not None
    solution.apply(1.0)
    assert loss_of(network, images) < 1e-10


def test_it_is_the_smallest_change_that_fits() -> None:
    """Against the pseudo-inverse of the features, a one for the bias among them."""
    network, images = small_network(layers=2), small_images(10)
    solution = solve_last_layer(network, images.pixels)
    assert solution is not None
    with torch.no_grad():
        features = network.net[:-2](images.pixels).double()
        residual = (images.pixels - network(images.pixels)).double().flatten(1)
    expected = torch.linalg.pinv(torch.cat([features, torch.ones(10, 1, dtype=torch.float64)], 1)) @ residual
    change = torch.cat([solution.change[0], solution.change[1][:, None]], 1)
    assert torch.allclose(change, expected.T, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_a_share_does_not_depend_on_what_was_applied_before() -> None:
    """A run that is resumed between two milestones must write the same bits as one that is not."""
    images, results = small_images(), []
    for shares in ((0.9,), (0.3, 0.7, 0.9), (1.0, 0.9)):
        network = small_network()
        solution = solve_last_layer(network, images.pixels)
        assert solution is not None
        for share in shares:
            solution.apply(share)
        results.append(vector(network))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_only_the_last_layer_changes_and_no_hook_stays() -> None:
    network, images = small_network(), small_images()
    before = [p.detach().clone() for p in network.parameters()]
    solution = solve_last_layer(network, images.pixels)
    assert solution is not None
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))  # solving changes nothing
    solution.apply(0.5)
    same = [torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True)]
    assert same == [True] * (len(same) - 2) + [False, False]
    pickle.dumps(network)  # a hook that stayed could not be pickled


def test_copies_of_an_image_do_no_harm() -> None:
    images = small_images(3)[[0, 1, 2]]
    pixels = torch.cat([images.pixels, images.pixels])
    network = small_network(layers=2)
    solution = solve_last_layer(network, pixels)
    assert solution is not None
    solution.apply(1.0)
    assert loss_of(network, images) < 1e-9


def test_where_it_does_not_apply() -> None:
    few, many = small_images(20).pixels, small_images(65).pixels
    assert solve_last_layer(small_network(), many) is None  # 64 features cannot fit 65 images
    assert can_solve(small_network(), few)
    assert not can_solve(small_network(), many)
    assert solve_last_layer(UNet(channels=1, widths=(4, 8)), few) is None
    assert last_linear(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())) is None
    assert last_linear(nn.Sequential(nn.Linear(4, 4, bias=False))) is None
    assert last_linear(nn.Identity()) is None
    assert last_linear(small_network().requires_grad_(False)) is None  # frozen
    unused_last = nn.ModuleList([nn.Identity(), nn.Linear(64, 64)])
    unused_last.forward = unused_last[0].forward
    assert solve_last_layer(unused_last, few) is None
    network = FullyConnected((1, 2, 2), layers=3, width=5)
    assert last_linear(network) is network.net[-2]
