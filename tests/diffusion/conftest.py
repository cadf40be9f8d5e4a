from pathlib import Path

import pytest

from recollect.diffusion import train_prior
from tests.diffusion.making import TINY, pictures


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a prior that was trained for a moment."""
    folder = tmp_path_factory.mktemp("prior")
    train_prior(pictures(), folder, max_seconds=0.5, recipe=TINY, device="cpu", about="noise", samples=3)
    return folder
