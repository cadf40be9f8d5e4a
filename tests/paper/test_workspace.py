from dataclasses import replace
from pathlib import Path

import pytest

from recollect import InputError
from recollect.diffusion import can_open_priors
from recollect.paper.run import run
from recollect.paper.scales import SMALL, scale_named
from recollect.paper.workspace import open_workspace
from tests.paper.making import FIT, make_experiment, make_workspace


def test_real_data_at_the_small_scale_has_records_of_its_own(tmp_path: Path) -> None:
    own = open_workspace(scale_named("small", str(tmp_path)), str(tmp_path))
    assert own.store.folder.name == own.work.name == "small-real"
    assert open_workspace(SMALL).store.folder.name == "small"


def test_a_data_folder_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(InputError, match="There is no folder not/there; --data is the folder"):
        open_workspace(SMALL, "not/there")


def test_images_that_do_not_exist_are_an_error(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (tmp_path / "made4-train.npz").unlink()
    with pytest.raises(InputError, match="There is no SVHN file"):
        run([make_experiment()], SMALL, workspace)


@pytest.mark.skipif(not can_open_priors(), reason="needs diffusers")
def test_the_bundled_prior_is_opened_by_its_name(tmp_path: Path) -> None:
    workspace, images = make_workspace(tmp_path), replace(FIT.images, prior="cifar10-32")
    assert workspace.has_prior(images)
    prior = workspace.prior(images)
    assert prior.name == "cifar10-32"
    assert prior.card is not None
    assert "CIFAR-10" in prior.card.trained_on
    assert str(prior.card.overlap(workspace.images(FIT, "train"))) == "none of 4"


def test_images_without_a_prior_are_an_error(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert not workspace.has_prior(FIT.images)
    with pytest.raises(InputError, match="no diffusion prior for the images made4"):
        workspace.prior(FIT.images)
