from dataclasses import replace

import pytest

from recollect import InputError
from recollect.paper.cells import Cell
from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.scales import FULL, SMALL, scale_named


def test_the_scales_differ_in_sizes_alone() -> None:
    """And in how many U-Nets are trained with Adam too, and in the generic method, which two cores skip for FC-10."""
    assert FULL.by_both["unet"] == ("softplus",)
    assert (SMALL.few["fc10"].prior, FULL.few["fc10"].prior) == (None, "tiny-64")
    without = {kind: replace(images, prior=SMALL.few[kind].prior) for kind, images in FULL.few.items()}
    same = replace(FULL, by_both=SMALL.by_both, few=without, trainings={}, growing=SMALL.growing, widths=SMALL.widths)
    for experiment in EXPERIMENTS.values():
        small, full = experiment.cells(SMALL), experiment.cells(same)
        assert [without_sizes(cell) for cell in small] == [without_sizes(cell) for cell in full]
        assert len(experiment.fits(SMALL)) == len(experiment.fits(same))


def test_very_many_images_are_trained_with_muon_alone() -> None:
    fits = {fit for experiment in EXPERIMENTS.values() for fit in experiment.fits(FULL)}
    fits |= {e.pictures.fit(FULL) for e in EXPERIMENTS.values() if e.pictures}
    assert {fit.optimizer for fit in fits if fit.images.count == 25_000} == {"muon"}


def test_the_sizes_of_the_paper() -> None:
    sizes = {fit.images.name: fit.milestones[-1] for e in EXPERIMENTS.values() for fit in e.fits(FULL)}
    assert sizes == {"tiny600": 1e-8, "svhn50": 1e-8, "tiny25000": 1e-4, "cifar1000": 1e-4}
    with pytest.raises(InputError, match="no scale 'huge'; choose from small, full"):
        scale_named("huge")


def test_two_trainings_of_one_name_do_not_exist() -> None:
    for scale in (SMALL, FULL, scale_named("small", "data")):
        fits = {fit for e in EXPERIMENTS.values() for fit in e.fits(scale)}
        assert len({fit.name for fit in fits}) == len(fits)


def without_sizes(cell: Cell) -> tuple[object, ...]:
    return cell.loss, cell.set, cell.mask, cell.method, cell.fit.kind, cell.fit.activation, cell.fit.optimizer
