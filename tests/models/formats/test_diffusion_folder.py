from pathlib import Path

import pytest

from recollect import InputError, open_model
from recollect.diffusion import Denoiser
from recollect.diffusion.networks import network_for
from recollect.diffusion.own import write_own


def test_a_folder_with_a_diffusion_model_opens_as_a_denoiser(tmp_path: Path) -> None:
    write_own(tmp_path, network_for("residual", (3, 4, 4), 0, width=8, blocks=1))
    model = open_model(str(tmp_path), device="cpu")
    assert isinstance(model, Denoiser)
    assert model.shape == (3, 4, 4)


def test_other_folders_are_none_and_a_label_is_for_diffusion_models(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not a file"):
        open_model(str(tmp_path))
    with pytest.raises(InputError, match="A label is the class of a class-conditional diffusion model"):
        open_model(lambda x: x, label=3)
