import pickle
import shutil
from pathlib import Path

import pytest
import torch

from recollect import FullyConnected
from recollect.checkpoints import save_checkpoint
from recollect.models import PortableModel
from tests.models.making import SIZE, onnx_convolution


def test_a_file_travels_with_its_content(tmp_path: Path) -> None:
    network = FullyConnected((3, 4, 4), layers=2, width=8, seed=1)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, network, {})
    sent = pickle.dumps(PortableModel.of(str(path), {"device": "cpu", "input_range": "-1,1"}))
    path.unlink()
    arrived = pickle.loads(sent)
    x = torch.rand(2, 3, 4, 4)
    assert torch.equal(arrived.opened(x), (network(x * 2 - 1) + 1) / 2)
    assert arrived.opened is arrived.opened


@pytest.mark.parametrize("location", ["m.onnx.data", "m.onnx_data"])
def test_weights_beside_an_onnx_model_travel_with_it(tmp_path: Path, location: str) -> None:
    onnx = pytest.importorskip("onnx")
    path, same = onnx_convolution(tmp_path / "m.onnx")
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location=location, size_threshold=0)
    portable = PortableModel.of(path, {"device": "cpu"})
    shutil.rmtree(tmp_path)
    x = torch.rand(2, *SIZE)
    torch.testing.assert_close(portable.opened(x), same(x))


def test_an_object_travels_itself() -> None:
    network = FullyConnected((3, 4, 4), layers=2, width=8, seed=1)
    arrived = pickle.loads(pickle.dumps(PortableModel.of(network, {})))
    x = torch.rand(2, 3, 4, 4)
    assert torch.equal(arrived.opened(x), network(x))
    assert not arrived.files
