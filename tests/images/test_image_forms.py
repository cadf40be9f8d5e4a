from collections.abc import Callable, Iterable, Iterator
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
    import datasets
    import pyarrow as arrow

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


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("form", [None, "numpy", "torch"])
def test_a_hugging_face_dataset_of_arrays(form: str | None, dtype: str, values: Values) -> None:
    import datasets

    pictures = values(4, 8, 8, 3)
    held = pictures if dtype == "uint8" else (pictures / 255).astype(np.float32)
    features = datasets.Features({"label": datasets.Value("int64"), "picture": datasets.Array3D((8, 8, 3), dtype)})
    made = datasets.Dataset.from_dict({"label": [0, 1, 0, 1], "picture": list(held)}, features=features)
    made = made.with_format(form)
    assert Images.of(made).hash == Images.of(pictures).hash
    assert Images.of(DataLoader(made, batch_size=2)).hash == Images.of(pictures).hash
    stream = made.to_iterable_dataset()
    with pytest.raises(InputError, match=r"through torch.utils.data.DataLoader\(dataset, batch_size=None\)"):
        Images.of(stream)
    assert Images.of(DataLoader(stream, batch_size=None)).hash == Images.of(pictures).hash


def test_an_iterator_is_asked_for_as_a_list(values: Values) -> None:
    with pytest.raises(InputError, match="Cannot make images of list_iterator: make a list of it"):
        Images.of(iter(list(values(3, 8, 8, 3))))


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
    with pytest.raises(InputError, match="the set is empty"):
        Images.of(DataLoader(Stream(pixels[:0])))


def pictures_of(items: list[tuple[torch.Tensor, int]]) -> torch.Tensor:
    return torch.stack([pixels / 2 for pixels, _ in items])


@pytest.mark.parametrize(
    "collate",
    [
        pictures_of,
        lambda items: [pixels / 2 for pixels, _ in items],
        lambda items: {"pixel_values": pictures_of(items), "labels": torch.tensor([label for _, label in items])},
        lambda items: (pictures_of(items), torch.tensor([label for _, label in items])),
    ],
    ids=["tensor", "list", "dict", "tuple"],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_function_that_makes_batches_converts_the_images(collate: Callable[[Any], Any], channels: int) -> None:
    pixels = torch.rand(5, channels, 8, 8)
    labelled = TensorDataset(pixels, torch.arange(5))
    for options in ({"batch_size": 2, "shuffle": True}, {"batch_sampler": Batches(range(5), 2, False)}):
        assert torch.equal(Images.of(DataLoader(labelled, collate_fn=collate, **options)).pixels, pixels / 2)
    stream = DataLoader(Pairs(pixels), batch_size=2, collate_fn=collate)
    assert torch.equal(Images.of(stream).pixels, pixels / 2)


class Pairs(IterableDataset):
    def __init__(self, pixels: Iterable[torch.Tensor]) -> None:
        self.pixels = pixels

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        yield from ((one, 0) for one in self.pixels)


def test_a_loader_that_makes_no_batches() -> None:
    pixels = torch.rand(5, 3, 8, 8)
    assert torch.equal(Images.of(DataLoader(Pairs(pixels), batch_size=None)).pixels, pixels)
    batches = Pairs(list(pixels.split(2)))  # as webdataset makes them
    assert torch.equal(Images.of(DataLoader(batches, batch_size=None)).pixels, pixels)


def test_a_stream_that_breaks_is_told() -> None:
    def broken() -> Iterator[torch.Tensor]:
        yield torch.rand(3, 8, 8)
        raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match=r"Item 1 of this Pairs cannot be read \(OSError: .*Input/output error\)."):
        Images.of(DataLoader(Pairs(broken()), batch_size=1))


def test_a_column_of_paths(tmp_path: Path, values: Values) -> None:
    pictures = values(3, 8, 8, 3)
    frame = pd.DataFrame({"path": [str(tmp_path / f"{number}.png") for number in range(3)], "label": [0, 1, 0]})
    for path, picture in zip(frame["path"], pictures, strict=True):
        Image.fromarray(picture).save(path)
    chosen = frame[frame["label"] == 0]
    assert Images.of(chosen["path"]).hash == Images.of(pictures[[0, 2]]).hash
    assert Images.of(list(zip(chosen["path"], chosen["label"], strict=True))).hash == Images.of(pictures[[0, 2]]).hash
    with pytest.raises(InputError, match="Of one with paths of images give their column"):
        Images.of(chosen)


def test_a_data_frame_has_columns_and_an_index() -> None:
    frame = pd.DataFrame({"age": [0.1, 0.5], "income": [0.2, 1.0]}, index=["a", "b"])
    rows = Images.of(frame)
    assert (rows.columns, rows.ids, rows.shape) == (("age", "income"), ("a", "b"), (2,))
    assert Images.of(pd.concat([frame, frame])).ids == ("0", "1", "2", "3")
    with pytest.raises(InputError, match=r"A data frame holds numbers alone; leave out or .* \(name\)\."):
        Images.of(frame.assign(name=["x", "y"]))


def test_an_item_that_cannot_be_read_is_named() -> None:
    class Unmounted(Items):
        def __getitem__(self, position: int) -> Any:
            if position == 3:
                raise OSError(5, "Input/output error")
            return super().__getitem__(position)

    with pytest.raises(InputError, match=r"Item 3 of this Unmounted cannot be read \(OSError: .*Input/output error\)."):
        Images.of(Unmounted(list(torch.rand(5, 1, 8, 8))))


def test_a_dataset_with_random_transforms_is_told(recwarn: pytest.WarningsRecorder) -> None:
    class Flipping(Items):
        def __getitem__(self, position: int) -> Any:
            self.items[position] = self.items[position].flip(-1)
            return self.items[position]

    Images.of(Items(list(torch.rand(5, 1, 8, 8))))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="Item 0 was another image when it was read again: this Flipping changes"):
        Images.of(Flipping(list(torch.rand(5, 1, 8, 8))))


def test_the_first_of_two_images_is_taken_and_that_is_told(recwarn: pytest.WarningsRecorder) -> None:
    noisy, clean = torch.rand(5, 1, 8, 8), torch.rand(5, 1, 8, 8)
    Images.of(TensorDataset(noisy, torch.rand(5, 1)))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="Item 0 holds two images of one size, and the first of each item is taken"):
        assert torch.equal(Images.of(TensorDataset(noisy, clean)).pixels, noisy)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(3, torch.rand(3, 8, 8))] * 2, "Item 0 begins with an int; give the image first"),
        (TensorDataset(torch.arange(2), torch.rand(2, 3, 8, 8)), "Item 0 begins with a Tensor; give the image first"),
        ([torch.rand(4, 3, 8, 8)] * 2, r"shape \(4, 3, 8, 8\); .* join batches with torch\.cat\(batches\)"),
        (iter(DataLoader(Items([1, 2]))), r"give the DataLoader itself, without iter\(\)"),
        (np.ma.masked_greater(np.random.default_rng(0).random((4, 3, 8, 8)), 0.5), "A masked array has values"),
        (torch.rand(4, 3, 8, 8).to("meta"), r"got a tensor without values \(device meta\)"),
        (pd.DataFrame({"a": [0.1, None], "b": [0.1, 0.3]}), "Values of rows must be finite; .* the first in row 1"),
        (DataLoader(Items([1, 2]), collate_fn=lambda items: items[0]), "Batch 0 holds no images, but an int"),
    ],
    ids=["label first", "label first in a tensor", "batches", "iterator", "masked", "meta", "missing", "no batch"],
)
def test_what_holds_no_images_is_told(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Images.of(data)
