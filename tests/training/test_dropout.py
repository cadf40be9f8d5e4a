import torch

from recollect.training import Recipe
from recollect.training.stepper import Stepper
from tests.training.small import small_images, small_network, vector


def test_dropout_is_drawn_anew_at_every_step_and_not_while_measuring() -> None:
    x = small_images().pixels
    both = [Stepper(small_network(dropout=0.5), x, Recipe()) for _ in range(2)]
    before = torch.get_rng_state()
    both[0].run(4)
    for _ in range(4):  # in other windows, as after a pause
        both[1].run(1)
    assert torch.equal(vector(both[0].network), vector(both[1].network))
    assert torch.equal(torch.get_rng_state(), before)
    assert both[0].measure(averaged=False) == both[0].measure(averaged=False)
    other = Stepper(small_network(dropout=0.5), x, Recipe(seed=7))
    other.run(4)
    assert not torch.equal(vector(other.network), vector(both[0].network))
