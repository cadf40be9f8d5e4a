from pathlib import Path

import numpy as np
import pytest

from recollect import InputError, load
from recollect.sources.stated_range import ValueRange


def test_ends_become_zero_and_one_exactly_and_constant_columns_zero() -> None:
    unit = ValueRange(np.array([-3.0, 5.0]), np.array([0.1, 5.0]))
    assert unit.to_unit(np.array([[-3.0, 5.0], [0.1, 5.0]]), "x").tolist() == [[0, 0], [1, 0]]
    with pytest.raises(InputError, match="1 of 2 values lie outside"):
        unit.to_unit(np.array([[0.0, 6.0]]), "x")


def test_arrays_of_whole_numbers_need_a_range(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[-32768, 0, 32767]], np.int16))
    with pytest.raises(InputError, match=r"holds int16.*state their range: range=LOW,HIGH"):
        load(path)
    assert np.allclose(load(f"{path}?range=-32768,32767").pixels, [[0, 0.5, 1]], atol=1e-4)


def test_channels_of_signals_have_a_range_each(tmp_path: Path) -> None:
    values = np.stack([np.linspace(0, 1, 20), np.linspace(-5, 5, 20)])[None].repeat(4, 0)
    np.save(tmp_path / "a.npy", values)
    signals = load(f"{tmp_path}/a.npy?range={tmp_path}/a.npy")
    assert signals.shape == (2, 20)
    assert np.allclose(signals.pixels[:, 0], signals.pixels[:, 1])
    with pytest.raises(InputError, match="images take range=LOW,HIGH"):
        load(f"{tmp_path}/a.npy?as=images&range={tmp_path}/a.npy")
    for other, stated in ((values[:, 0, :7], "7"), (values[:, :1], "1x1")):  # rows, and signals of one channel
        np.save(tmp_path / "b.npy", other[..., :7])
        with pytest.raises(InputError, match=f"for each of {stated} columns or channels, and these values are 2x20"):
            load(f"{tmp_path}/a.npy?range={tmp_path}/b.npy")
    values[0, 0, 0] = np.nan
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match="finite"):
        load(f"{tmp_path}/a.npy?range={tmp_path}/a.npy")
    with pytest.raises(InputError, match="finite"):
        load(f"{tmp_path}/a.npy?range=-5,5")
