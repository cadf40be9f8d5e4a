import zipfile
from io import BytesIO
from pathlib import Path

import pytest
import torch

from recollect.errors import InputError
from recollect.files.archives import BrokenZip, Metered, check_safetensors, check_torch_archive, open_zip, read_entry
from recollect.files.limits import LISTING, MODEL_GROWTH, MODEL_LISTING


def archive(path: Path, entries: int = 3) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(entries):
            file.writestr(f"entry-{number}", bytes(1000))
    return path


def test_entries_are_read(tmp_path: Path) -> None:
    with open_zip(archive(tmp_path / "a.zip")) as opened:
        assert [read_entry(opened, entry) for entry in opened.infolist()] == [bytes(1000)] * 3


def test_a_long_list_of_entries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "a.zip", 100)
    monkeypatch.setenv(LISTING.variable, "5000")
    with pytest.raises(InputError, match=r"a list of entries of \d,\d{3} bytes.*RECOLLECT_MAX_LISTING"), open_zip(path):
        pass
    monkeypatch.setenv(LISTING.variable, "10000")
    with open_zip(path) as opened:
        assert len(opened.infolist()) == 100


def test_broken_archives_and_entries_say_so(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    content[45] ^= 255  # inside the first packed entry
    path.write_bytes(content)
    with open_zip(path) as opened, pytest.raises(BrokenZip):
        read_entry(opened, opened.infolist()[0])
    path.write_bytes(content[:-30])
    with pytest.raises(BrokenZip), open_zip(path):
        pass


def test_an_archive_of_torch_is_held_to_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.pt"
    torch.save({"a": torch.zeros(1000)}, path)
    check_torch_archive(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("w/data/9", bytes(100_000))
    check_torch_archive(path)
    monkeypatch.setenv(MODEL_GROWTH.variable, "50000")
    with pytest.raises(InputError, match=r"unpack to \d{3},\d{3}.*RECOLLECT_MAX_MODEL_GROWTH"):
        check_torch_archive(path)


def test_a_label_of_torch_that_is_no_word_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save({"a": torch.zeros(1000)}, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as file:
        file.writestr("w/.data/2/version", bytes(5000))
    with pytest.raises(InputError, match="5,000 bytes under the name"):
        check_torch_archive(path)


def test_a_header_that_is_longer_than_its_file_is_left_to_safetensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    check_safetensors(path)
    monkeypatch.setenv(MODEL_LISTING.variable, "5")
    with pytest.raises(InputError, match="has a header of"):
        check_safetensors(path)


def test_a_metered_stream_ends_at_its_limit() -> None:
    stream = Metered(BytesIO(b"abcdef"), 5)
    assert stream.read(3) == b"abc"
    with pytest.raises(OverflowError):
        stream.read(100)
    whole = Metered(BytesIO(b"abcdef"), 6)
    assert (whole.read(), whole.read(1)) == (b"abcdef", b"")
