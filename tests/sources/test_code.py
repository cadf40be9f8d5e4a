from pathlib import Path

import pytest

from recollect import InputError, load
from recollect.sources import reproduce, split

CODE = """
import numpy as np
import torch
from torch.utils.data import Dataset

values = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), np.uint8)


class Pictures(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, position):
        return torch.from_numpy(values)[position], position % 2


held = Pictures()


def made(count=4):
    return values[:count]


def needing(count):
    return values[:count]
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the working folder."""
    name = f"code_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize(("name", "count"), [("held", 6), ("made", 4), ("Pictures", 6), ("values", 6)])
def test_an_object_a_function_and_a_class_are_sources(module: str, name: str, count: int) -> None:
    images = load(f"{module}:{name}")
    assert (len(images), images.shape, images.name) == (count, (3, 8, 8), f"code:{module}:{name}")
    assert images.hash == load(f"{module}:values")[:count].hash


def test_draws_and_conversions_work_as_for_files(module: str) -> None:
    images = load(f"{module}:held?count=3&grey=1&part=control")
    assert (len(images), images.shape) == (3, (1, 8, 8))


def test_mistakes_are_named(module: str) -> None:
    with pytest.raises(InputError, match=f"{module} has no nothing; it has .*made"):
        load(f"{module}:nothing")
    with pytest.raises(InputError, match=r"was called without arguments and raised TypeError.*returns images"):
        load(f"{module}:needing")
    with pytest.raises(InputError, match=r"There is no source 'absent'.*name code as package.module:name"):
        load("absent:held")
    with pytest.raises(InputError, match=f"{module}:np: Cannot make images of module"):
        load(f"{module}:np")
    with pytest.raises(InputError, match=r"names no code; write package.module:name"):
        load("code:two words")


def test_no_record_may_name_code(module: str) -> None:
    record = split(f"{module}:held?count=2").record()
    with pytest.raises(InputError, match="which no file may name"):
        reproduce(record)
    assert reproduce(record, source=f"{module}:held").train.ids == tuple(record["train"]["ids"])
