from collections import Counter
from dataclasses import replace

import pytest

from recollect import InputError
from recollect.paper.cells import Cell
from recollect.paper.experiments import EXPERIMENTS, plain_recipe
from recollect.paper.scales import FULL, SMALL, scale_named


def test_the_scales_differ_in_sizes_alone() -> None:
    """And in the generic method, which two cores skip for FC-10."""
    assert (SMALL.few["fc10"].prior, FULL.few["fc10"].prior) == (None, "tiny-64")
    without = {kind: replace(images, prior=SMALL.few[kind].prior) for kind, images in FULL.few.items()}
    without["unet"] = replace(without["unet"], more_control_spellings=())  # photographs have none
    same = replace(FULL, few=without, trainings=SMALL.trainings, growing=SMALL.growing, widths=SMALL.widths)
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
    growing = {f"tiny{count}-of-1000": 1e-8 for count in (100, 200, 400, 600, 1000)}
    shown = {"photos600": 1e-8, "photos1000": 1e-4}
    assert sizes == {"tiny600": 1e-8, "svhn50": 1e-8, "tiny25000": 1e-4, "cifar1000": 1e-4} | growing | shown
    with pytest.raises(InputError, match="no scale 'huge'; choose from small, full"):
        scale_named("huge")


def test_two_trainings_of_one_name_do_not_exist() -> None:
    for scale in (SMALL, FULL, scale_named("small", "data")):
        fits = {fit for e in EXPERIMENTS.values() for fit in e.fits(scale)}
        assert len({fit.name for fit in fits}) == len(fits)


def without_sizes(cell: Cell) -> tuple[object, ...]:
    return cell.loss, cell.set, cell.mask, cell.method, cell.fit.kind, cell.fit.activation, cell.fit.optimizer


def test_networks_are_trained_as_often_as_the_full_scale_says() -> None:
    fits = {fit for experiment in EXPERIMENTS.values() for fit in experiment.fits(FULL)}
    usual = [fit for fit in fits if not fit.changes and not fit.skip and not fit.plain]
    trained = Counter((fit.kind, fit.activation, fit.optimizer, fit.images.name) for fit in usual)
    assert trained["fc10", "lrelu", "adam", "tiny600"] == trained["fc10", "prelu", "muon", "tiny600"] == 10
    assert trained["unet", "softplus", "muon", "svhn50"] == 3
    assert trained["unet", "lrelu", "muon", "cifar1000"] == trained["fc20", "lrelu", "muon", "tiny25000"] == 2
    assert trained["fc20", "lrelu", "adam", "tiny600"] == 1
    assert trained["unet", "prelu", "adam", "svhn50"] == trained["unet", "lrelu", "adam", "svhn50"] == 1


def test_unets_have_longer_with_adam_unless_their_recipe_is_plain() -> None:
    assert FULL.perfect("unet", "lrelu", "muon").limit_seconds == 240
    assert FULL.perfect("unet", "lrelu", "adam").limit_seconds == 400
    assert FULL.plain("unet", "lrelu").limit_seconds == 240


def test_the_goal_of_a_plain_training_is_its_limit() -> None:
    for kind, seconds in (("fc10", 200), ("unet", 240)):
        plain = FULL.plain(kind, "lrelu")
        assert (plain.goal_seconds, plain.limit_seconds) == (seconds, seconds)


def test_fc10_has_the_plain_recipe_at_two_rates() -> None:
    fits = [fit for fit in plain_recipe.fits(FULL) if (fit.kind, fit.activation) == ("fc10", "lrelu")]
    assert [fit.name for fit in fits] == [
        "fc10-lrelu-adam-tiny600-plain", "fc10-lrelu-adam-tiny600-plain-rate-0.0001",
    ]  # fmt: skip
    recipes = [fit.recipe(SMALL.plain("fc10", "lrelu").network((3, 12, 12)), 600) for fit in fits]
    assert [recipe.rate for recipe in recipes] == [1e-3, 1e-4]
    assert recipes[1] == replace(recipes[0], rate=1e-4)


def test_figures_of_images_show_photographs_that_may_be_published() -> None:
    shown = [(name, e.pictures.fit(FULL)) for name, e in EXPERIMENTS.items() if e.pictures]
    assert {name: fit.images.spelling.split("&")[1] for name, fit in shown} == {
        "recovery-path": "size=64", "mask-path": "size=64", "near-threshold": "size=64", "ddnm": "size=32",
    }  # fmt: skip
    assert all(fit.images.spelling.startswith("photos") for _, fit in shown)


def test_at_the_small_scale_steps_end_a_training_before_any_clock() -> None:
    """Twenty milliseconds a step, ten times what a step of these networks takes, are still within the limit."""
    for fit in {fit for experiment in EXPERIMENTS.values() for fit in experiment.fits(SMALL)}:
        assert fit.limit_steps is not None
        assert fit.limit_steps * 0.02 < fit.limit_seconds


def test_the_networks_of_scaling_and_defences_have_one_recipe() -> None:
    """More images than the width would change it; Muon has its own."""
    for scale in (SMALL, FULL):
        for name in ("scaling", "defences"):
            for fit in EXPERIMENTS[name].fits(scale):
                recipe = fit.recipe(fit.network((3, 12, 12)), fit.images.count)
                assert (recipe.anneal_steps, recipe.batch) == (None, None)


def test_a_growing_set_is_the_first_images_of_the_largest() -> None:
    smallest, *_, largest = FULL.growing
    assert smallest.first_of == largest.first_of == "tiny1000"
    assert smallest.spelling == largest.spelling
    assert smallest.identity != largest.identity
