from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from recollect import Images, InputError
from recollect.diffusion import bundled
from recollect.duplicates import find_duplicates
from recollect.paper.cells import MORE_CONTROL, Cell, ImageSet
from recollect.paper.experiments import perfect_fit
from recollect.paper.new_masks import NEW_MASKS
from recollect.paper.scales import FULL
from recollect.training import Recipe
from tests.read_only_repository import ROOT

FIT = FULL.perfect("fc10", "lrelu", "adam")
CELL = Cell(FIT, 1e-8, "train", "block", "blind")


def test_a_key_tells_every_part_of_a_cell() -> None:
    others = [
        replace(CELL, fit=FULL.perfect("fc10", "lrelu", "muon")), replace(CELL, loss=1e-7), replace(CELL, loss=None),
        replace(CELL, set="control"), replace(CELL, mask="half"), replace(CELL, method="known"),
        replace(CELL, noise_std=0.02), replace(CELL, fit=replace(FIT, width=512)),
        replace(CELL, gamma=1.0), replace(CELL, gamma=0.5),
    ]  # fmt: skip
    assert len({cell.key for cell in [CELL, *others]}) == 1 + len(others)
    assert CELL.key.startswith("fc10_lrelu_adam_tiny600-1e_08-train-block-blind-")


def test_of_very_many_images_a_share_is_attacked_spread_over_the_set() -> None:
    images = Images(torch.rand(25, 1, 2, 2), ids=[str(i) for i in range(25)])
    sampled = replace(CELL, fit=replace(FIT, images=replace(FIT.images, attacked=10)))
    assert CELL.select_attacked(images) is images
    ids = [int(i) for i in sampled.select_attacked(images).ids]
    assert (len(set(ids)), ids[0], ids[-1]) == (10, 0, 24)
    assert max(b - a for a, b in pairwise(ids)) <= 3
    assert replace(CELL, attacked=26).select_attacked(images) is images
    assert len(replace(sampled, attacked=20).select_attacked(images)) == 20
    assert len({CELL.key, sampled.key, replace(sampled, attacked=20).key}) == 3
    assert FULL.moderate("fc20", "lrelu", "muon").images.attacked == 500


def test_a_fully_connected_network_may_have_a_last_width() -> None:
    fit = replace(FULL.moderate("fc20", "lrelu", "muon"), width=(8, 30))
    assert fit.network((1, 4, 4)).settings == {
        "shape": [1, 4, 4], "layers": 20, "width": 8, "last_width": 30, "activation": "lrelu", "seed": 42,
    }  # fmt: skip
    assert "last_width" not in replace(fit, width=8).network((1, 4, 4)).settings


def test_how_long_a_training_may_take_does_not_change_what_it_is() -> None:
    assert replace(CELL, fit=replace(FIT, limit_seconds=1, goal_seconds=1)).key == CELL.key


@pytest.mark.parametrize(
    ("kind", "activation", "noise", "gamma"),
    [
        ("fc10", "lrelu", 0, 0.5),
        ("fc10", "prelu", 0, 0.1),
        ("fc20", "lrelu", 0, 0.1),
        ("fc10", "lrelu", 0.02, 0.1),
        ("unet", "prelu", 0, 1.0),
    ],
)
def test_gamma_is_the_papers(kind: str, activation: str, noise: float, gamma: float) -> None:
    fit = FULL.perfect(kind, activation, "adam")
    methods = [
        Cell(fit, 1e-8, "train", "block", m, noise).build_method() for m in ("blind", "known", "known-400", "refined")
    ]
    assert {method.gamma for method in methods} == {gamma}
    assert [method.steps for method in methods] == [40, 40, 400, 40]
    assert [method.paste for method in methods[1:]] == [noise == 0] * 3


@pytest.mark.parametrize("method", ["blind", "known", "known-400", "refined"])
def test_a_gamma_of_its_own_is_used_and_named(method: str) -> None:
    own = replace(CELL, method=method, gamma=1.0)
    assert own.build_method() == replace(replace(CELL, method=method).build_method(), gamma=1.0)
    assert own.method_name == f"{method}, gamma 1"
    assert str(own).endswith(f"block {method} gamma-1")


def test_where_images_come_from(tmp_path: Path) -> None:
    real = ImageSet("svhn50", "svhn:{data}/svhn?count=50", 50)
    assert real.sources("control", "/d") == ["svhn:/d/svhn?count=50&part=control"]
    fewer = replace(real, control_spelling="svhn:{data}/svhn?count=5")
    assert fewer.sources("control", "/d") == ["svhn:/d/svhn?count=5&part=control"]
    assert fewer.sources("train", "/d") == real.sources("train", "/d")
    with pytest.raises(InputError, match="--data DIR"):
        real.sources("train", None)
    (tmp_path / "svhn50-train.npz").touch()
    assert real.sources("train", str(tmp_path)) == [f"array:{tmp_path}/svhn50-train.npz"]
    assert real.sources("control", str(tmp_path)) == [f"svhn:{tmp_path}/svhn?count=50&part=control"]


def test_a_part_can_be_joined_from_several_sources() -> None:
    photos = [f"photos?count={count}&size=8&seed=1&part={part}" for count, part in ((3, "train"), (2, "control"))]
    images = ImageSet("photos3", photos[0], 3, more_control_spellings=tuple(photos))
    assert images.parts == ("train", "control", MORE_CONTROL)
    one, other = (ImageSet("", spelling, 0).load("train", None) for spelling in photos)
    joined = images.load(MORE_CONTROL, None)
    assert joined.ids == (*one.ids, *other.ids)
    assert torch.equal(joined.stored, torch.cat([one.stored, other.stored]))


def test_the_unseen_svhn_images_are_500_without_a_copy_of_a_training_image() -> None:
    data = ROOT.parent / "shared" / "data"
    if not (data / "svhn").is_dir():
        pytest.skip("needs the SVHN files in ../shared/data")
    images = FULL.few["unet"]
    unseen, train = images.load(MORE_CONTROL, str(data)), images.load("train", str(data))
    assert len(unseen) == len(set(unseen.ids)) == 500
    for file in ("train", "test"):
        photos = (data / "svhn" / f"{file}_photo_ids.txt").read_text().split()
        crops = [name for name in (*train.ids, *unseen.ids) if name.startswith(file)]
        assert len({photos[int(name.split("/")[1])] for name in crops}) == len(crops)
    assert not find_duplicates(train, unseen).across


def test_the_generic_method_has_one_record_for_all_networks_of_the_same_images() -> None:
    lrelu, softplus = (FULL.perfect("unet", activation, "muon") for activation in ("lrelu", "softplus"))
    keys = {Cell(fit, loss, "train", "dust", "ddnm").key for fit in (lrelu, softplus) for loss in (1e-4, 1e-8)}
    assert len(keys) == 1
    assert "svhn50" in keys.pop()
    assert len({Cell(lrelu, 1e-8, "train", mask, "ddnm").key for mask in ("block", "dust")}) == 2


def test_what_is_looked_for_is_what_the_generic_method_is_set_to() -> None:
    """The settings are spelled out so that a record can be found where no prior can be opened."""
    pytest.importorskip("diffusers")
    cell = Cell(FULL.perfect("unet", "softplus", "muon"), 1e-8, "train", "dust", "ddnm")
    method = cell.build_method(bundled())
    looked_for = dict(cell.settings["method"])
    assert looked_for.pop("kind") == type(method).__name__
    assert looked_for.pop("prior").startswith("cifar10-32 ")
    assert {name: getattr(method, name) for name in looked_for} == looked_for


def test_larger_images_have_a_prior_of_their_own_and_one_record_for_all_networks() -> None:
    cells = [
        Cell(FULL.perfect("fc10", a, o), 1e-8, "train", "dust", "ddnm")
        for a in ("lrelu", "prelu")
        for o in ("adam", "muon")
    ]
    assert len({cell.key for cell in cells}) == 1
    assert cells[0].settings["method"]["prior"] == "tiny-64"
    assert "ddnm" in perfect_fit.methods(cells[0].fit, 1e-8)
    assert "ddnm" not in perfect_fit.methods(cells[0].fit, 1e-7)


def test_trainings_that_differ_in_anything_have_other_names_and_cells() -> None:
    unet = FULL.perfect("unet", "lrelu", "muon")
    others = [
        replace(unet, seed=43), replace(unet, skip=True), replace(unet, plain=True),
        replace(unet, changes=(("weight_decay", 0.1),)), replace(unet, changes=(("weight_decay", 1.0),)),
        replace(unet, images=FULL.growing[0]),
    ]  # fmt: skip
    fits = [unet, *others]
    assert len({fit.name for fit in fits}) == len(fits)
    assert len({Cell(fit, 1e-8, "train", "block", "blind").key for fit in fits}) == len(fits)
    assert replace(unet, seed=50).first == unet
    assert unet.name == "unet-lrelu-muon-svhn50"
    assert others[0].name == "unet-lrelu-muon-svhn50-seed43"


def test_a_training_is_what_its_name_says() -> None:
    small = replace(FULL.perfect("unet", "lrelu", "adam"), width=(8, 16))
    first, second = (replace(small, seed=seed).network((3, 8, 8)) for seed in (42, 43))
    assert not torch.equal(next(first.parameters()), next(second.parameters()))
    assert replace(small, seed=43).recipe(second, 4).seed == 43
    assert replace(small, skip=True).network((3, 8, 8)).settings["skip"] is True
    plain = replace(small, plain=True)
    assert plain.network((3, 8, 8)).settings["initialisation"] == "pytorch"
    assert plain.recipe(first, 4) == Recipe.plain(4)
    defended = replace(FIT, changes=(("dropout", 0.1), ("width", 16), ("input_noise", 0.2)))
    network = defended.network((3, 8, 8))
    assert (network.settings["dropout"], network.settings["width"]) == (0.1, 16)
    assert defended.recipe(network, 4).input_noise == 0.2


def test_new_masks_erase_a_third_to_a_half() -> None:
    images = Images(torch.rand(2, 3, 16, 16))
    for name in NEW_MASKS:
        y = replace(CELL, mask=name).observe(images).y
        assert 0.3 < float((y == 0).float().mean()) < 0.6, name


def test_biharmonic_needs_neither_network_nor_prior() -> None:
    cells = [Cell(FULL.perfect("unet", a, "muon"), 1e-8, "train", "dust", "biharmonic") for a in ("lrelu", "prelu")]
    assert len({cell.key for cell in cells}) == 1
    assert not cells[0].needs_prior
    assert type(cells[0].build_method()).__name__ == "Biharmonic"
    assert "biharmonic" in perfect_fit.methods(cells[0].fit, 1e-8)
