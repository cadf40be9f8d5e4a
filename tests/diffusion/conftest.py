from pathlib import Path

import pytest

from recollect.diffusion import Card
from tests.diffusion.folders import write_prior
from tests.diffusion.making import pictures, train_steps


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a denoiser that was trained for a moment."""
    folder = tmp_path_factory.mktemp("denoiser")
    train_steps(pictures(), folder, 3, about="noise", samples=3)
    return folder


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in diffusers' layout, network and schedule side by side, with a card of the images it knows."""
    folder = tmp_path_factory.mktemp("written")
    write_prior(folder)
    Card.of(pictures(), "noise").write(folder)
    return folder
