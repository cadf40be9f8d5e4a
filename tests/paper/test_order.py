from dataclasses import replace

from recollect.paper.experiments import EXPERIMENTS
from recollect.paper.order import (
    BEYOND,
    MORE,
    OTHER,
    OWN,
    PARTS,
    SEEDS,
    in_parts,
    is_of_paper,
    one_by_one,
    weights_needed,
)
from recollect.paper.run import gather
from recollect.paper.scales import FULL, SMALL
from tests.paper.making import make_experiment

EVERY = list(EXPERIMENTS.values())


def test_every_cell_of_the_suite_is_in_one_part() -> None:
    for scale in (FULL, SMALL):
        work = gather(EVERY, scale)
        parts = in_parts(work, EVERY, scale)
        assert list(parts) == [part for part in PARTS if part in parts]
        placed = [cell for part in parts.values() for cells in part.values() for cell in cells]
        assert len(placed) == len(set(placed))
        assert set(placed) == {cell for cells in work.values() for cell in cells}
        assert {fit for part in parts.values() for fit in part} == set(work)


def test_the_first_part_has_the_papers_networks_methods_and_figures_alone() -> None:
    first = in_parts(gather(EVERY, FULL), EVERY, FULL)[OWN]
    assert {fit.name for fit in first} == {
        "fc10-lrelu-adam-tiny600", "fc10-prelu-adam-tiny600", "fc20-lrelu-adam-tiny600",
        "unet-lrelu-muon-svhn50", "unet-prelu-muon-svhn50", "unet-softplus-muon-svhn50",
        "fc20-lrelu-muon-tiny25000", "unet-softplus-muon-cifar1000",
        "fc10-lrelu-adam-photos600", "fc20-lrelu-muon-photos1000",
    }  # fmt: skip
    cells = [cell for of_fit in first.values() for cell in of_fit]
    assert {cell.method for cell in cells} == {"iterate", "blind", "known", "ddnm"}
    assert {cell.gamma for cell in cells} == {None}
    assert {cell.set for cell in cells} == {"train", "control"}


def test_more_cells_are_of_networks_that_the_first_part_trains() -> None:
    parts = in_parts(gather(EVERY, FULL), EVERY, FULL)
    assert set(parts[MORE]) < set(parts[OWN])
    assert not any(is_of_paper(cell) for cells in parts[MORE].values() for cell in cells)
    assert {fit.optimizer for fit in parts[OTHER] if fit.images.name == "tiny600"} == {"muon"}
    assert all(fit.skip or fit.plain or fit.changes or fit.images.first_of or fit.layers == 20 for fit in parts[BEYOND])


def test_further_trainings_come_last_by_their_seeds() -> None:
    seeds = [fit.seed for fit in in_parts(gather(EVERY, FULL), EVERY, FULL)[SEEDS]]
    assert seeds == sorted(seeds)
    assert seeds[0] == 43


def test_a_training_without_cells_has_a_place() -> None:
    experiment = replace(
        make_experiment(), cells=lambda _: [], trainings=lambda scale: [scale.perfect("fc10", "lrelu", "adam")]
    )
    (part,) = in_parts(gather([experiment], SMALL), [experiment], SMALL).items()
    assert part == (OWN, {SMALL.perfect("fc10", "lrelu", "adam"): []})


def test_one_by_one_every_training_is_done_with_before_the_next() -> None:
    parts = in_parts(gather(EVERY, FULL), EVERY, FULL)
    works = one_by_one(parts)
    order = [fit for work in works for fit in work]
    runs = [fit for i, fit in enumerate(order) if i == 0 or order[i - 1] != fit]
    assert len(runs) == len(set(runs)) == len(set(order))
    assert runs[: len(parts[OWN])] == list(parts[OWN])  # the paper's own networks first
    listed = [cell for work in works for cells in work.values() for cell in cells]
    assert sorted(map(str, listed)) == sorted(str(c) for part in parts.values() for cs in part.values() for c in cs)
    first = [cell for work in works[:2] for cells in work.values() for cell in cells]
    assert [is_of_paper(cell) for cell in first] == sorted((is_of_paper(cell) for cell in first), reverse=True)


def test_weights_are_needed_where_a_cell_is_and_at_the_last_loss() -> None:
    needed = weights_needed(EVERY, FULL)
    fit = FULL.perfect("fc10", "lrelu", "adam")
    assert needed[fit] == set(fit.milestones)
    assert needed[replace(fit, seed=43)] == {1e-8}  # a further training is attacked at its last loss alone
    for work in in_parts(gather(EVERY, FULL), EVERY, FULL).values():
        for own, cells in work.items():
            assert {cell.loss for cell in cells if cell.sees_network} <= needed[own]
