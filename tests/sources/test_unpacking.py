from pathlib import Path

import pytest

from recollect import InputError
from recollect.files.limits import PACKED, SET_GROWTH
from recollect.sources.unpacking import check_unpacked


def test_an_array_far_larger_than_its_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SET_GROWTH.variable, "1000")
    path = tmp_path / "a.npz"
    path.write_bytes(bytes(10))
    check_unpacked(PACKED * 10 + 1000, path)
    with pytest.raises(InputError, match=SET_GROWTH.variable):
        check_unpacked(PACKED * 10 + 1001, path)
