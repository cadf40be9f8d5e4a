import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect import InputError
from recollect.files.limits import SET_GROWTH
from recollect.sources.tar import read_tar


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def anything(_name: str) -> bool:
    return True


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_wanted_files_are_read_however_the_archive_is_packed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(pack(packed({"folder/a": b"1", "folder/b": b"2", "../c": b"3"})))
    assert read_tar(path, lambda name: name != "b", 10) == {"a": b"1", "c": b"3"}
    assert [file.name for file in tmp_path.iterdir()] == ["a.tar"]


def test_files_and_archives_beyond_a_size_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(gzip.compress(packed({"a": bytes(5000)})))
    with pytest.raises(InputError, match="a is 5,000 bytes long, more than 4,999; it is not opened"):
        read_tar(path, anything, 4999)
    monkeypatch.setenv(SET_GROWTH.variable, "4000")
    with pytest.raises(InputError, match=SET_GROWTH.variable):
        read_tar(path, anything, 5000)


def test_damage_and_many_entries_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(gzip.compress(packed({"a": bytes(5000)}))[:-40])
    with pytest.raises(InputError, match="not a readable tar archive"):
        read_tar(path, anything, 5000)
    path.write_bytes(packed({str(number): b"" for number in range(1001)}))
    with pytest.raises(InputError, match="holds more than 1,000 entries, such as '1000'"):
        read_tar(path, anything, 10)
