import json
import os
import signal
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from recollect import FullyConnected, InputError, UNet
from recollect import checkpoints as checkpoints_module
from recollect.checkpoints import (
    FORMAT,
    build_network,
    describe_network,
    load_checkpoint,
    load_checkpoint_about,
    save_checkpoint,
    write_tensors,
)
from tests import warm

NETWORKS = [
    FullyConnected((1, 4, 4), layers=3, width=8, activation="prelu", seed=3),
    FullyConnected((3, 2, 2), layers=2, width=5),
    UNet(channels=1, widths=(4, 6), activation="softplus"),
    UNet(widths=(4, 6, 8), activation="prelu", skip=True, seed=9),
]
ABOUT = {"loss": 9.5e-9, "steps": 1200, "recipe": {"rate": 1e-3}, "log": ["[1 s] reached"], "finish": None}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: type(n).__name__)
def test_round_trip(network: nn.Module, tmp_path: Path) -> None:
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.rand(p.shape, generator=torch.Generator().manual_seed(1)))  # not what the seed gives
    save_checkpoint(tmp_path / "a.safetensors", network, ABOUT)
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    assert type(loaded.network) is type(network)
    assert loaded.network.settings == network.settings
    for (name, a), (other, b) in zip(network.state_dict().items(), loaded.network.state_dict().items(), strict=True):
        assert name == other
        assert torch.equal(a, b)
    assert {k: v for k, v in loaded.about.items() if k != "network"} == ABOUT
    assert loaded.about["network"] == json.loads(describe_network(network))
    assert load_checkpoint_about(tmp_path / "a.safetensors") == loaded.about


def test_channels_last_weights_are_read_as_they_were_saved(tmp_path: Path) -> None:
    network = UNet(widths=(4, 6)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    save_checkpoint(tmp_path / "a.safetensors", network, {})
    loaded = load_checkpoint(tmp_path / "a.safetensors").network
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), loaded.parameters(), strict=True))


def test_any_reader_of_safetensors_can_read_it(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    save_checkpoint(tmp_path / "a.safetensors", NETWORKS[0], ABOUT)
    assert set(load_file(tmp_path / "a.safetensors")) == set(NETWORKS[0].state_dict())


def test_other_networks_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Only FullyConnected, UNet can be written as a checkpoint, not Linear"):
        save_checkpoint(tmp_path / "a.safetensors", nn.Linear(2, 2), {})
    assert not list(tmp_path.iterdir())


def test_a_network_that_is_not_registered_could_not_be_read_again(tmp_path: Path) -> None:
    class Own(FullyConnected):
        pass

    with pytest.raises(InputError, match="can be written as a checkpoint, not Own"):
        save_checkpoint(tmp_path / "a.safetensors", Own((1, 2, 2), layers=2, width=2), {})


def test_what_is_not_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for read in (load_checkpoint, load_checkpoint_about):
        with pytest.raises(InputError, match="There is no checkpoint"):
            read(path)
        with pytest.raises(InputError, match="There is no checkpoint"):
            read(tmp_path)
    for content in (b"", b"hello", b"\xff" * 100, b"PK\x03\x04" + bytes(50)):
        path.write_bytes(content)
        for read in (load_checkpoint, load_checkpoint_about):
            with pytest.raises(InputError, match="cannot be read as safetensors"):
                read(path)


@pytest.mark.parametrize("keep", [7, 8, 100, 0.5, 0.99])
def test_a_truncated_file(keep: float, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, NETWORKS[0], ABOUT)
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, "not one of recollect's checkpoints"),
        ({"format": "pt"}, "not one of recollect's checkpoints"),
        ({"format": FORMAT}, "whose description is damaged"),
        ({"format": FORMAT, "network": "{", "about": "{}"}, "whose description is damaged"),
        ({"format": FORMAT, "network": "[1]", "about": "{}"}, "whose description is damaged"),
        ({"format": FORMAT, "network": "{}", "about": "3"}, "whose description is damaged"),
        (
            {"format": FORMAT, "network": '{"class": "ResNet"}', "about": "{}"},
            "network 'ResNet', which recollect does not know",
        ),
        ({"format": FORMAT, "network": '{"class": "UNet", "depth": 3}', "about": "{}"}, "cannot build .* UNet.*depth"),
        ({"format": FORMAT, "network": '{"class": "UNet", "widths": [4]}', "about": "{}"}, "do not fit the network"),
        ({"format": FORMAT, "network": '{"class": "UNet", "activation": "x"}', "about": "{}"}, "no activation 'x'"),
    ],
)
def test_foreign_and_damaged_files(metadata: dict[str, str], words: str, tmp_path: Path) -> None:
    write_tensors(tmp_path / "a.safetensors", {"w": torch.zeros(2)}, metadata)
    with pytest.raises(InputError, match=words):
        load_checkpoint(tmp_path / "a.safetensors")


def test_only_named_classes_are_built() -> None:
    with pytest.raises(InputError, match=r"'os\.system'"):
        build_network({"class": "os.system", "command": "true"})


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"a.safetensors cannot be written: .*\."):
        save_checkpoint(tmp_path / "file" / "a.safetensors", NETWORKS[1], {})
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(InputError, match=r"folder.safetensors cannot be written: Is a directory\."):
        save_checkpoint(tmp_path / "folder.safetensors", NETWORKS[1], {})
    assert {p.name for p in tmp_path.iterdir()} == {"file", "folder.safetensors"}  # nothing half-written stays


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match=r"cannot be written: Permission denied"):
        save_checkpoint(tmp_path / "a.safetensors", NETWORKS[1], {})


def test_killed_in_the_middle_of_writing_the_old_file_stays(tmp_path: Path) -> None:
    """A process that kills itself with SIGKILL when half of the new file is written."""
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, NETWORKS[1], {"which": "old"})
    code = f"""
        import os, signal
        from pathlib import Path
        from recollect import FullyConnected
        from recollect.checkpoints import save_checkpoint

        def half(self, data, write=Path.write_bytes):
            write(self, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        Path.write_bytes = half
        save_checkpoint({str(path)!r}, FullyConnected((3, 2, 2), layers=2, width=5), {{"which": "new"}})
    """
    assert warm.run(textwrap.dedent(code)).code == -signal.SIGKILL
    assert load_checkpoint(path).about["which"] == "old"


def test_readers_see_whole_files_while_one_is_written_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    code = f"""
        import torch
        torch.set_num_threads(1)
        from recollect import FullyConnected
        from recollect.checkpoints import save_checkpoint
        network = FullyConnected((1, 16, 16), layers=2, width=128)
        for i in range(100_000):
            for p in network.parameters():
                torch.nn.init.constant_(p, i)
            save_checkpoint({str(path)!r}, network, {{"i": i}})
    """
    writer = warm.WarmProcess(textwrap.dedent(code))
    try:
        while not path.exists():
            assert writer.poll() is None
        for _ in range(40):
            loaded = load_checkpoint(path)
            assert {v for t in loaded.network.state_dict().values() for v in t.unique().tolist()} == {loaded.about["i"]}
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.end()


def test_a_file_replaced_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors opens a file twice: a header of the old one must not come with tensors of the new one."""
    path, reads = tmp_path / "a.safetensors", []
    write_tensors(path, {"w": torch.zeros(2)}, {"which": "old"})
    once = checkpoints_module._read_tensors

    def replaced_meanwhile(*given: Any) -> Any:
        reads.append(once(*given))
        if len(reads) == 1:
            write_tensors(path, {"w": torch.ones(2)}, {"which": "new"})
        return reads[-1]

    monkeypatch.setattr(checkpoints_module, "_read_tensors", replaced_meanwhile)
    tensors, metadata = checkpoints_module.read_tensors(path)
    assert metadata["which"] == "new"
    assert torch.equal(tensors["w"], torch.ones(2))
    assert len(reads) == 2


@pytest.mark.parametrize("position", [0.3, 0.6, 0.9])
def test_a_flipped_bit_of_a_checkpoint_is_noticed(tmp_path: Path, position: float) -> None:
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, FullyConnected((1, 2, 2), layers=2, width=3), {"loss": 1.0, "note": "x" * 200})
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1
    path.write_bytes(content)
    for read in (load_checkpoint, load_checkpoint_about):
        with pytest.raises(InputError, match=r"a\.safetensors"):
            read(path)
