from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SubsetRandomSampler, TensorDataset

from recollect import Images, InputError

Values = Callable[..., np.ndarray]


class Items(Dataset):
    """A dataset of whatever a list holds."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> Any:
        return self.items[position]


def as_bytes(values: np.ndarray) -> Images:
    return Images.from_uint8(torch.from_numpy(values))


def test_8_bit_arrays_are_read_as_from_a_file(tmp_path: Path, values: Values) -> None:
    colour, grey = values(4, 8, 9, 3), values(4, 8, 9)
    assert Images.of(colour).hash == as_bytes(colour.transpose(0, 3, 1, 2).copy()).hash
    assert Images.of(grey).hash == as_bytes(grey[:, None]).hash
    assert Images.of(torch.from_numpy(grey)).hash == as_bytes(grey[:, None]).hash
    assert Images.of(list(colour)).hash == Images.of(colour).hash


def test_three_dimensions_of_floats_are_signals_unless_square() -> None:
    assert Images.of(torch.rand(5, 2, 16)).shape == (2, 16)
    assert Images.of(np.random.default_rng(0).random((5, 2, 16))).shape == (2, 16)
    assert Images.of(torch.rand(5, 8, 8)).shape == (1, 8, 8)
    assert Images(torch.rand(5, 8, 8)).shape == (8, 8)


def test_a_dataset_of_rows_and_labels() -> None:
    rows = torch.rand(5, 7)
    assert torch.equal(Images.of(TensorDataset(rows, torch.arange(5))).pixels, rows)


@pytest.mark.parametrize("key", ["image", "pixel_values", "photograph"])
def test_a_dataset_of_dicts(key: str, values: Values) -> None:
    pictures = values(3, 8, 8, 3)
    items = [{"label": 3, key: Image.fromarray(one), "name": "x"} for one in pictures]
    assert Images.of(Items(items)).hash == Images.of(pictures).hash


def test_of_two_images_in_an_item_the_one_called_image_is_taken(values: Values) -> None:
    pictures, masks = values(3, 8, 8, 3), values(3, 8, 8)
    items = [{"mask": mask, "image": picture} for picture, mask in zip(pictures, masks, strict=True)]
    assert Images.of(items).hash == Images.of(pictures).hash


def test_a_hugging_face_dataset(values: Values) -> None:
    datasets, arrow = pytest.importorskip("datasets"), pytest.importorskip("pyarrow")
    pictures = values(4, 8, 8, 3)
    features = datasets.Features({"label": datasets.Value("int64"), "photograph": datasets.Image()})
    encoded = [datasets.Image().encode_example(Image.fromarray(one)) for one in pictures]
    table = arrow.table({"label": [0, 1, 0, 1], "photograph": encoded}).cast(features.arrow_schema)
    information = datasets.DatasetInfo(features=features)
    made = datasets.Dataset(datasets.table.InMemoryTable(table), info=information, fingerprint="a")
    assert Images.of(made).hash == Images.of(pictures).hash
    assert Images.of(made.with_format("torch")).hash == Images.of(pictures).hash
    with pytest.raises(InputError, match="choose one of its parts: train"):
        Images.of(datasets.DatasetDict({"train": made}))


def test_a_list_of_paths(tmp_path: Path, values: Values) -> None:
    pictures = values(3, 8, 8, 3)
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture).save(path)
    images = Images.of(paths)
    assert images.hash == Images.of(pictures).hash == Images.of([str(path) for path in paths]).hash
    assert images.ids == tuple(map(str, paths))
    Image.fromarray(values(9, 8)).save(paths[1])
    with pytest.raises(InputError, match=r"differ in size: 8x8 \(2 files.*Resize them first"):
        Images.of(paths)


def test_a_loader_is_its_dataset_whatever_its_order_and_batches() -> None:
    pixels = torch.rand(7, 3, 8, 8)
    labelled = TensorDataset(pixels, torch.arange(7))
    for options in ({"shuffle": True}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}):
        assert torch.equal(Images.of(DataLoader(labelled, **options)).pixels, pixels)


def test_a_loader_of_a_part_is_that_part() -> None:
    pixels, part = torch.rand(7, 3, 8, 8), [5, 1, 4]
    sampler = SubsetRandomSampler(part)
    for options in ({"sampler": sampler}, {"batch_sampler": Batches(sampler, 2, False)}):
        images = Images.of(DataLoader(TensorDataset(pixels), **options))
        assert torch.equal(images.pixels, pixels[[1, 4, 5]])
        assert images.ids == ("1", "4", "5")


class Batches(BatchSampler):
    """A batch sampler of somebody's own."""


class Stream(IterableDataset):
    def __init__(self, pixels: torch.Tensor) -> None:
        self.pixels = pixels

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from ({"image": one, "label": 0} for one in self.pixels)


def test_a_loader_of_a_stream_is_read_to_its_end() -> None:
    pixels = torch.rand(5, 3, 8, 8)
    assert torch.equal(Images.of(DataLoader(Stream(pixels), batch_size=2)).pixels, pixels)
    with pytest.raises(InputError, match="the loader is empty"):
        Images.of(DataLoader(Stream(pixels[:0])))


def test_a_data_frame_has_columns_and_an_index() -> None:
    frame = pd.DataFrame({"age": [0.1, 0.5], "income": [0.2, 1.0]}, index=["a", "b"])
    rows = Images.of(frame)
    assert (rows.columns, rows.ids, rows.shape) == (("age", "income"), ("a", "b"), (2,))
    assert Images.of(pd.concat([frame, frame])).ids == ("0", "1", "2", "3")
    with pytest.raises(InputError, match="A data frame holds numbers alone"):
        Images.of(frame.assign(name=["x", "y"]))
