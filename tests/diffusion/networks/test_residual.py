import torch

from recollect.diffusion.networks import Residual


def test_every_pixel_depends_on_every_other() -> None:
    network = Residual((1, 3, 4), width=16, blocks=2)
    jacobian = torch.func.jacrev(lambda x: network(x, torch.tensor([0.1])))(torch.rand(1, 1, 3, 4))
    assert jacobian.shape == (1, 1, 3, 4, 1, 1, 3, 4)
    assert bool((jacobian != 0).all())
