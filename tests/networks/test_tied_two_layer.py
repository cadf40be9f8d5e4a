import pytest
import torch

from recollect import InputError, TiedTwoLayer
from recollect.networks import NETWORKS


def test_it_is_its_formula() -> None:
    weight, x = torch.randn(5, 12), torch.rand(4, 3, 2, 2)
    expected = [(weight.T @ torch.tanh(weight @ image.flatten())).view(3, 2, 2) for image in x]
    assert torch.allclose(TiedTwoLayer(weight)(x), torch.stack(expected), atol=1e-5)


def test_a_weight_that_is_no_matrix_is_refused() -> None:
    with pytest.raises(InputError, match=r"W is an m x d matrix, got shape \(5,\)"):
        TiedTwoLayer(torch.zeros(5))


def test_no_command_offers_it() -> None:
    assert TiedTwoLayer not in NETWORKS.values()
