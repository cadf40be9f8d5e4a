import json
import struct
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from recollect import FullyConnected, InputError
from recollect.checkpoints import load_checkpoint, save_checkpoint
from recollect.plain_tensors import read_plainly, save_plainly

TENSORS = {
    "weight": torch.randn(3, 4), "empty": torch.zeros(0, 2), "one": torch.tensor(5),
    "bytes": torch.arange(7, dtype=torch.uint8),
    "flags": torch.tensor([True, False]), "double": torch.randn(2, dtype=torch.float64),
}  # fmt: skip


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)


def test_what_it_writes_safetensors_reads() -> None:
    assert equal(load(save_plainly(TENSORS, {"a": "b"})), TENSORS)


def test_what_safetensors_writes_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(save(TENSORS, {"a": "b"}))
    tensors, metadata = read_plainly(path)
    assert equal(tensors, TENSORS)
    assert metadata == {"a": "b"}
    assert read_plainly(path, only_metadata=True) == ({}, {"a": "b"})


def header(**entry: object) -> bytes:
    words = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | entry}).encode()
    return struct.pack("<Q", len(words)) + words + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"abc", struct.pack("<Q", 2**60), struct.pack("<Q", 4) + b"nope", struct.pack("<Q", 2) + b"[]",
        header(data_offsets=[0, 16]), header(data_offsets=[-8, 0]), header(shape=[3]), header(dtype="F8"),
        header(shape=[-1, -2]),
    ],
)  # fmt: skip
def test_a_damaged_or_hostile_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        read_plainly(tmp_path / "x.safetensors")


def test_checkpoints_do_without_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = FullyConnected((3, 4, 4), layers=3, width=8)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    save_checkpoint(tmp_path / "a.safetensors", network, {"loss": 1.0})
    found = load_checkpoint(tmp_path / "a.safetensors")
    assert equal(dict(found.network.state_dict()), dict(network.state_dict()))
    assert found.about["loss"] == 1.0
