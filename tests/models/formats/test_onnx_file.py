import sys
from pathlib import Path

import pytest
import torch

from recollect import InputError, Iterate
from recollect.models import open_model, probe_model
from tests.models.making import agree, images, onnx_convolution


@pytest.mark.parametrize("batch", ["n", 1, 4])
def test_onnx(tmp_path: Path, batch: int | str) -> None:
    path, same = onnx_convolution(tmp_path / "m.onnx", batch)
    opened = open_model(path)
    assert agree(opened, same)
    assert probe_model(opened, images()).deterministic
    assert len(Iterate(limit=2)(opened, images())) == 5


def test_onnx_with_two_outputs_and_without_derivatives(tmp_path: Path) -> None:
    path, same = onnx_convolution(tmp_path / "m.onnx", outputs=2)
    with pytest.raises(InputError, match=r"y: tensor 5x3x8x8, z: tensor.*--output y"):
        probe_model(open_model(path), images())
    opened = open_model(path, output="z")
    assert torch.allclose(opened(images()), -same(images()), atol=1e-6)
    with pytest.raises(InputError, match="no derivatives"):
        torch.func.vjp(opened, images())


def test_onnx_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = onnx_convolution(tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"pip install 'recollect\[onnx\]'"):
        open_model(path)
