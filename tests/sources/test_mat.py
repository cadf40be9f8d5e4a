from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.sources import load
from recollect.sources.mat import check_mat

FINE = {"X": np.arange(3072 * 12, dtype=np.uint8).reshape(32, 32, 3, 12), "y": np.ones((12, 1))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mat")


@pytest.mark.parametrize("packed", [True, False])
def test_what_scipy_writes_passes(folder: Path, packed: bool) -> None:
    scipy.io.savemat(folder / "train_32x32.mat", FINE, do_compression=packed)
    check_mat(folder / "train_32x32.mat")


def test_another_format_is_refused(folder: Path) -> None:
    scipy.io.savemat(folder / "old.mat", {"y": np.ones(3)}, format="4")
    with pytest.raises(InputError, match="expected the format of MATLAB 5"):
        check_mat(folder / "old.mat")


def test_a_long_name_and_many_variables_are_refused(folder: Path) -> None:
    scipy.io.savemat(folder / "many.mat", {f"a{number}": np.ones(1) for number in range(17)})
    with pytest.raises(InputError, match="more than 16 variables"):
        check_mat(folder / "many.mat")


@given(st.data())
def test_changed_bytes_are_read_or_refused(folder: Path, data: st.DataObject) -> None:
    path = folder / "train_32x32.mat"
    scipy.io.savemat(path, FINE, do_compression=data.draw(st.booleans()))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 400) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    with suppress(InputError):
        assert load(f"svhn:{folder}").shape == (3, 32, 32)
