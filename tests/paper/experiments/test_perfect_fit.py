from collections import Counter

from recollect.paper.experiments.perfect_fit import OTHER, USUAL, cells, fits, methods
from recollect.paper.scales import SMALL


def test_every_network_is_trained_with_its_usual_optimizer_and_some_with_the_other() -> None:
    trained = fits(SMALL)
    assert len(set(trained)) == len(trained) == 10
    assert [fit.optimizer for fit in trained] == [USUAL[f.kind] for f in trained[:5]] + [
        OTHER[f.kind] for f in trained[5:]
    ]
    assert {fit.kind for fit in fits(SMALL, ["unet"])} == {"unet"}


def test_the_generic_method_stands_at_the_last_loss_of_networks_with_a_prior() -> None:
    fully_connected, unet = (next(fit for fit in fits(SMALL) if fit.kind == kind) for kind in ("fc10", "unet"))
    assert "ddnm" in methods(unet, unet.milestones[-1])
    assert "ddnm" not in methods(unet, unet.milestones[0])
    assert "ddnm" not in methods(fully_connected, fully_connected.milestones[-1])


def test_cells_are_of_every_loss_mask_and_method() -> None:
    fit = fits(SMALL)[0]
    own = [cell for cell in cells(SMALL) if cell.fit == fit]
    counted = {loss: len(SMALL.masks) * len(methods(fit, loss)) for loss in fit.milestones}
    assert Counter(cell.loss for cell in own) == counted
