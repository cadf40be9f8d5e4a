from pathlib import Path

import pytest

from recollect import InputError
from recollect.limits import PACKED, SET_BYTES, SET_GROWTH
from recollect.sources.unpacking import check_set, check_unpacked


def test_an_array_far_larger_than_its_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SET_GROWTH.variable, "1000")
    path = tmp_path / "a.npz"
    path.write_bytes(bytes(10))
    check_unpacked(PACKED * 10 + 1000, path)
    with pytest.raises(InputError, match=SET_GROWTH.variable):
        check_unpacked(PACKED * 10 + 1001, path)


def test_a_set_beyond_the_limit_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SET_BYTES.variable, "1000")
    check_set((10, 1, 10, 10), "a")
    with pytest.raises(InputError, match="a holds 11x1x10x10 values, 1,100 bytes"):
        check_set((11, 1, 10, 10), "a")
