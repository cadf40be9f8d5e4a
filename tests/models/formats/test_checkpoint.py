from pathlib import Path

import pytest

from recollect import FullyConnected, InputError
from recollect.checkpoints import save_checkpoint, write_tensors
from recollect.models import open_model
from tests.models.making import SIZE, agree, tiny


def test_a_checkpoint(tmp_path: Path) -> None:
    network = FullyConnected(SIZE, layers=2, width=8)
    save_checkpoint(tmp_path / "a.safetensors", network, {"loss": 1e-4})
    opened = open_model(tmp_path / "a.safetensors")
    assert isinstance(opened, FullyConnected)
    assert not opened.training
    assert agree(opened, network)


def test_its_content_counts_and_not_its_name(tmp_path: Path) -> None:
    network = FullyConnected(SIZE, layers=2, width=8)
    save_checkpoint(tmp_path / "a.pt", network, {})
    assert agree(open_model(tmp_path / "a.pt"), network)


def test_a_key_for_one_set_of_weights_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "w.safetensors", tiny().state_dict(), {})
    with pytest.raises(
        InputError, match=r"holds one set of weights; leave weights_key='ema' \(--weights-key ema\) out"
    ):
        open_model("tests.models.making:tiny", weights=tmp_path / "w.safetensors", weights_key="ema")


def test_a_header_longer_than_the_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes((1000).to_bytes(8, "little") + b"{" + bytes(20))
    with pytest.raises(InputError, match="is not a file of a known kind"):
        open_model(path)
