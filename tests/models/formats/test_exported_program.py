import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from recollect import InputError
from recollect.models import Adapted, open_model, probe_model
from tests.models.making import Several, agree, export, images, tiny


@pytest.mark.parametrize("batch", ["fixed", "open", "limited"])
def test_an_exported_program(tmp_path: Path, batch: str) -> None:
    dimension = {"fixed": None, "open": torch.export.Dim.DYNAMIC, "limited": torch.export.Dim("n", min=2, max=4)}[batch]
    opened = open_model(export(tiny(), tmp_path / "m.pt2", batch=dimension))
    assert agree(opened, tiny())
    assert agree(opened, tiny(), 1)
    assert isinstance(opened.train(), nn.Module)  # an exported module's own train() raises
    assert probe_model(opened, images()).deterministic


def test_only_a_static_number_of_images_is_filled_up(tmp_path: Path) -> None:
    """A dimension with bounds is cut at the upper one and filled up to the lower one alone."""
    given: list[int] = []
    bounds = {(1, 4096): [5], (2, 4): [4, 2], None: [2, 2, 2]}
    for limits, expected in bounds.items():
        dimension = None if limits is None else torch.export.Dim("n", min=limits[0], max=limits[1])
        opened = open_model(export(tiny(), tmp_path / "m.pt2", batch=dimension))
        network = opened.inner if isinstance(opened, Adapted) else opened
        assert isinstance(network, torch.nn.Module)
        handle = network.register_forward_pre_hook(lambda _, inputs: given.append(len(inputs[0])))
        assert opened(images(5)).shape == images(5).shape
        handle.remove()
        assert given == expected
        given.clear()


def test_an_exported_program_of_a_vae(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Several().eval()
    path = export(model, tmp_path / "m.pt2")
    opened = open_model(path, output="1.image")
    assert torch.allclose(opened(images()), model(images())[1]["image"], atol=1e-6)
    with pytest.raises(InputError, match=r"of 2 parts"):
        open_model(path)(images())


def test_an_archive_without_its_version_is_refused_without_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(export(tiny(), tmp_path / "whole.pt2")) as whole, zipfile.ZipFile(path, "w") as lacking:
        for name in whole.namelist():
            if not name.endswith("/archive_version"):
                lacking.writestr(name, whole.read(name))
    with pytest.raises(InputError, match="failed locating file archive_version"):
        open_model(path)
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]
    assert "Traceback" not in capfd.readouterr().err
