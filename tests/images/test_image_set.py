import hashlib
import io
import pickle
import re
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from recollect import Images, InputError
from recollect.images import check_alike


def some(count: int = 4, shape: tuple[int, int, int] = (3, 8, 8), seed: int = 0) -> torch.Tensor:
    return torch.rand(count, *shape, generator=torch.Generator().manual_seed(seed))


def bytes_of(count: int = 4, shape: tuple[int, int, int] = (3, 8, 8)) -> torch.Tensor:
    return torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def picture(mode: str, size: int = 8) -> Image.Image:
    values = np.random.default_rng(3).integers(0, 256, (size, size, 3), np.uint8)
    return Image.fromarray(values).convert(mode)


# What is let in


def test_pixels_are_float32_as_given() -> None:
    images = Images(some())
    assert images.pixels.dtype == torch.float32
    assert torch.equal(images.pixels, some())
    assert (len(images), images.shape) == (4, (3, 8, 8))


def test_float64_becomes_float32() -> None:
    assert Images(some().double()).pixels.dtype == torch.float32


def test_the_ends_of_the_range_are_inside() -> None:
    pixels = torch.zeros(1, 1, 2, 2)
    pixels[0, 0, 0, 0] = 1
    assert torch.equal(Images(pixels).pixels, pixels)


def test_gradients_stay_outside() -> None:
    assert not Images(some().requires_grad_()).pixels.requires_grad


def test_arrays_may_have_channels_last() -> None:
    array = some().permute(0, 2, 3, 1).numpy()
    assert torch.equal(Images.of(array).pixels, some())


def test_arrays_with_channels_first_stay() -> None:
    assert torch.equal(Images.of(some().numpy()).pixels, some())


def test_read_only_reversed_and_byte_swapped_arrays() -> None:
    array = some().numpy()
    array.flags.writeable = False
    assert torch.equal(Images.of(array).pixels, some())
    assert torch.equal(Images.of(array[::-1]).pixels, some().flip(0))
    assert torch.equal(Images.of(array.astype(">f4")).pixels, some())


def test_a_list_of_arrays_channels_last_or_grey() -> None:
    assert torch.equal(Images.of([image.permute(1, 2, 0).numpy() for image in some()]).pixels, some())
    grey = some(shape=(1, 8, 8))
    assert torch.equal(Images.of([image[0].numpy() for image in grey]).pixels, grey)


def test_a_list_of_tensors() -> None:
    assert torch.equal(Images.of(list(some())).pixels, some())


def test_a_dataset_with_labels() -> None:
    assert torch.equal(Images.of(TensorDataset(some(), torch.arange(4))).pixels, some())


def test_a_dataset_without_labels() -> None:
    class Plain(Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            return some()[index]

    assert torch.equal(Images.of(Plain()).pixels, some())


def test_images_of_images_is_the_same() -> None:
    images = Images(some())
    assert Images.of(images) is images


# Signals and rows


@pytest.mark.parametrize(("shape", "kind"), [((2, 16), "signals"), ((9,), "rows"), ((1, 4, 4), "images")])
def test_items_of_any_shape_are_held(shape: tuple[int, ...], kind: str) -> None:
    pixels = torch.rand(5, *shape)
    images = Images(pixels)
    assert (images.shape, images.kind, len(images)) == (shape, kind, 5)
    assert torch.equal(images[[3, 1]].pixels, pixels[[3, 1]])
    assert images.hash == hashlib.sha256(repr(tuple(pixels.shape)).encode() + pixels.numpy().tobytes()).hexdigest()


def test_columns_have_names() -> None:
    rows = Images(torch.rand(3, 2), columns=["age", "income"])
    assert rows[1:].columns == ("age", "income")
    for columns in (["age"], ["age", "age"]):
        with pytest.raises(InputError, match="names of columns were given for values of shape"):
            Images(torch.rand(3, 2), columns=columns)
    with pytest.raises(InputError, match="names of columns"):
        Images(some(), columns=["r", "g", "b"])


# PIL images


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("1", 1), ("P", 3), ("RGBA", 3), ("LA", 1)])
def test_pil_images_by_mode(mode: str, channels: int) -> None:
    image = picture(mode)
    expected = np.atleast_3d(np.asarray(image.convert("L" if channels == 1 else "RGB"))).transpose(2, 0, 1)
    images = Images.of([image, image])
    assert images.shape == (channels, 8, 8)
    assert np.array_equal(images.pixels[1].numpy(), expected.astype(np.float32) / 255)


def test_pil_images_with_labels() -> None:
    assert Images.of([(picture("RGB"), 3), (picture("RGB"), 4)]).shape == (3, 8, 8)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pil_images_are_refused(mode: str) -> None:
    image = picture(mode)
    image.putalpha(Image.new("L", image.size, 200))
    with pytest.raises(InputError, match=r"partly transparent.*flatten it first"):
        Images.of([image])


@pytest.mark.parametrize(("mode", "dtype"), [("I;16", np.uint16), ("I", np.int32), ("F", np.float32)])
def test_pil_images_of_more_than_8_bits_are_refused(mode: str, dtype: type) -> None:
    image = Image.fromarray(np.full((8, 8), 300, dtype))
    assert image.mode == mode
    with pytest.raises(InputError, match=rf"mode {mode} has more than 8 bits a value; convert it to 8 bits first"):
        Images.of([image])


# 8-bit storage


def test_from_uint8_is_exactly_values_over_255() -> None:
    values = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    expected = (np.arange(256, dtype=np.float32) / np.float32(255)).reshape(1, 1, 16, 16)
    assert np.array_equal(Images.from_uint8(values).pixels.numpy(), expected)


def test_the_hash_does_not_depend_on_the_storage() -> None:
    values = bytes_of()
    photos = [Image.fromarray(v.permute(1, 2, 0).numpy()) for v in values]
    one = Images.from_uint8(values)
    assert one.hash == Images(values.float() / 255).hash == Images.of(photos).hash == Images(one.pixels.double()).hash


def test_from_uint8_refuses_other_types() -> None:
    with pytest.raises(InputError, match=r"takes 8-bit values, got torch.float32"):
        Images.from_uint8(some())
    with pytest.raises(InputError, match=r"must be a tensor, not ndarray"):
        Images.from_uint8(bytes_of().numpy())  # type: ignore[arg-type]


# Hash and ids


def test_the_hash_is_sha256_of_shape_and_float32_pixels() -> None:
    pixels = some(1500, (1, 2, 2))  # more than one slice of the hash
    expected = hashlib.sha256(b"(1500, 1, 2, 2)" + pixels.numpy().tobytes()).hexdigest()
    assert Images(pixels).hash == expected


def test_the_hash_is_stable() -> None:
    pixels = torch.arange(8, dtype=torch.float32).view(2, 1, 2, 2) / 8
    assert Images(pixels).hash == "03e39238f8676b9ac1d5394b0fe4c52a82ad97f9e326fbc25e393d47bc82f243"


def test_the_hash_sees_pixels_order_and_shape_alone() -> None:
    pixels = some()
    changed = pixels.clone()
    changed[2, 1, 3, 3] = 0.5
    hashes = {Images(p).hash for p in (pixels, changed, pixels.flip(0), pixels.view(4, 3, 4, 16))}
    assert len(hashes) == 4
    assert Images(pixels, ids="abcd", name="other").hash == Images(pixels).hash


def test_minus_zero_is_zero_to_the_hash() -> None:
    zeros = torch.zeros(1, 1, 2, 2)
    assert Images(-zeros).hash == Images(zeros).hash


def test_ids_are_kept_as_text_and_counted_by_default() -> None:
    assert Images(some(), ids=[7, "b", "c", "d"]).ids == ("7", "b", "c", "d")
    assert Images(some()).ids == ("0", "1", "2", "3")


def test_bad_ids() -> None:
    with pytest.raises(InputError, match=r"3 ids were given for 4 images; give one id an image"):
        Images(some(), ids="abc")
    with pytest.raises(InputError, match=r"'a' stands for more than one image"):
        Images(some(), ids="abca")


# Selections


@pytest.mark.parametrize(
    ("index", "positions"),
    [
        (1, [1]),
        (-1, [3]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([2, 0], [2, 0]),
        (np.array([True, False, False, True]), [0, 3]),
        (torch.tensor([3, 1]), [3, 1]),
        (torch.tensor([False, True, False, True]), [1, 3]),
    ],
)
@pytest.mark.parametrize("stored", ["float", "bytes"])
def test_selections_are_images_with_their_ids(index: object, positions: list[int], stored: str) -> None:
    ids = ["a", "b", "c", "d"]
    images = Images.from_uint8(bytes_of(), ids, "set") if stored == "bytes" else Images(some(), ids, "set")
    chosen = images[index]
    assert torch.equal(chosen.pixels, images.pixels[positions])
    assert chosen.ids == tuple(ids[p] for p in positions)
    assert chosen.name == "set"
    assert chosen.hash == Images(images.pixels[positions]).hash


def test_a_slice_of_bytes_stays_bytes() -> None:
    images = Images.from_uint8(torch.zeros(4, 3, 32, 32, dtype=torch.uint8))
    values = 2 * 3 * 32 * 32
    assert len(pickle.dumps(images[1:3])) < 4 * values  # what floats would take


def test_an_empty_selection_is_refused() -> None:
    with pytest.raises(InputError, match=r"leaves none of the 4 images"):
        Images(some())[4:]


def test_a_position_outside_raises_so_that_loops_end() -> None:
    assert [one.ids for one in cast(Any, Images(some()))] == [("0",), ("1",), ("2",), ("3",)]


def test_repr_names_size_and_hash() -> None:
    images = Images(some(), name="photos")
    assert repr(images) == f"Images('photos', 4 of 3x8x8, sha256 {images.hash[:12]})"


# What is turned away


def with_value(value: float) -> torch.Tensor:
    pixels = some()
    pixels[2, 0, 1, 1] = value
    return pixels


BAD_TENSORS = [
    (
        some() * 255,
        "must lie in [0, 1]; found [",
        "This looks like 0-255 data: divide by 255 (a file takes ?range=0,255).",
    ),
    (with_value(200.0), "found [", "0-255 data: divide by 255"),
    (
        some() * 2 - 1,
        "must lie in [0, 1]",
        "This looks like [-1, 1] data: use (pixels + 1) / 2 (a file takes ?range=-1,1).",
    ),
    ((some() - 0.45) / 0.2, "must lie in [0, 1]", "This looks normalised: undo it (pixels * std + mean) or clamp."),
    (with_value(1.0000001), "1.0000001]", "They stick out a little: use pixels.clamp(0, 1)."),
    (with_value(-0.01), "found [-0.0099999998", "pixels.clamp(0, 1)"),
    (with_value(float("nan")), "must be finite; found 1 NaN or infinite value, ", "the first in image 2"),
    (with_value(float("inf")), "must be finite", "the first in image 2"),
    (some()[0], "Shape (3, 8, 8) looks like one image", "pixels[None]"),
    (some()[None], "Shape (1, 4, 3, 8, 8) holds no images", "N x C x L (signals) or N x d (rows)"),
    (some()[:, 0, 0, 0], "Shape (4,) holds no images", "expected N x C x H x W"),
    (torch.zeros(0, 3, 8, 8), "There are no images here", "shape (0, 3, 8, 8) is empty"),
    (torch.zeros(2, 3, 0, 8), "There are no images here", "is empty"),
    (
        torch.zeros(2, 8, 8, 3),
        "Expected 1 or 3 channels, found 8",
        "look channels-last: use pixels.permute(0, 3, 1, 2)",
    ),
    (torch.zeros(2, 8, 8, 4), "Expected 1 or 3 channels, found 8", "the last of 4 channels, which come last"),
    (torch.zeros(2, 4, 8, 8), "Expected 1 or 3 channels, found 4", "in shape (2, 4, 8, 8)"),
    (bytes_of().long(), "got torch.int64", "looks like 0-255 data: divide by 255"),
    (bytes_of().long().flatten(1), "Values of rows must be floating point", "State the range that they have"),
    (bytes_of().long() * 200, "got torch.int64", "divide by the largest value that a pixel can have, such as 65535"),
    (some() > 0.5, "must be floating point in [0, 1], got torch.bool", ""),
]


@pytest.mark.parametrize(("pixels", "found", "advice"), BAD_TENSORS, ids=range(len(BAD_TENSORS)))
@pytest.mark.parametrize("door", [Images, Images.of])
def test_bad_tensors(door: type, pixels: torch.Tensor, found: str, advice: str) -> None:
    with pytest.raises(InputError, match=re.escape(found)) as raised:
        door(pixels)
    assert advice in str(raised.value)


def test_rows_of_both_sets_have_the_same_columns_in_the_same_order() -> None:
    values = torch.rand(2, 2)
    train = Images(values, columns=["a", "b"])
    with pytest.raises(InputError, match=r"rows have different columns: number 0 is 'a' and 'b'\..*\?columns=A\+B"):
        check_alike(train, Images(values, columns=["b", "a"]))
    for columns in (["a", "b"], ["0", "1"], []):  # numbers are no names
        check_alike(train, Images(values, columns=columns))


BAD_DATA = [
    ([some()[0], some(shape=(3, 8, 9))[0]], "Images differ in size (3x8x8, 3x8x9); give images of one size"),
    ([picture("RGB"), picture("L")], "Images differ in size (1x8x8, 3x8x8)"),
    (np.array([np.zeros((2, 2)), np.zeros((3, 3))], dtype=object), "holds images of mixed sizes"),
    ([], "There are no images here: the set is empty."),
    (np.zeros((0, 8, 8, 3)), "There are no images here"),
    (np.zeros((8, 8, 3)), "Shape (8, 8, 3) looks like one image; for one image use pixels[None], in a file np.save("),
    (np.zeros(8), "An array of shape (8,) does not hold images; expected N x C x H x W"),
    (bytes_of() % 2, "This set holds 8-bit values of only 0 and 1"),
    ([(bytes_of() % 2)[0].numpy()], "This set holds 8-bit values of only 0 and 1"),
    (np.full((2, 1, 4, 4), "a"), "Pixels must be numbers of at most 64 bits, got an array of <U1"),
    (np.full((2, 1, 4, 4), 0.5, np.longdouble), "numbers of at most 64 bits"),
    (np.full((2, 1, 4, 4), 200, np.uint16), "got torch.uint16; this looks like 0-255 data"),
    (np.full((2, 1, 4, 4), 3, np.uint64), "got torch.uint64."),
    (torch.zeros(2, 1, 4, 4, dtype=torch.complex64), "got torch.complex64."),
    (torch.zeros(2, 1, 4, 4).to(torch.float8_e4m3fn), "got torch.float8_e4m3fn."),
    (torch.zeros(2, 1, 4, 4).to_sparse(), "got a sparse tensor."),
    ([picture("L"), Image.new("LAB", (8, 8))], "Image 1: An image of mode LAB"),
    ([Image.new("La", (8, 8))], "Image 0: An image is partly transparent"),
    (np.full((2, 1, 4, 4), np.nan), "must be finite; found 32 NaN or infinite values, the first in image 0"),
    ([some()[0], some()], "Image 1 has shape (4, 3, 8, 8); expected C x H x W"),
    ([{"image": 1}], "Item 0 is a dict with the keys image; none of these holds an image"),
    ([{"a": some()[0], "b": some()[0]}], "Item 0 is a dict with the keys a, b; call the image 'image'"),
    (["no/such/file.png"], "1 of 1 files cannot be used. no/such/file.png cannot be read as an image"),
    ({"train": some()}, "Cannot make images of dict: choose one of its parts: train."),
    (iter(some()), "Cannot make images of"),
    (None, "Cannot make images of NoneType: give an array, a tensor, a Dataset, a DataLoader"),
    ("cifar10", "Expected images, got the text 'cifar10'"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DATA, ids=range(len(BAD_DATA)))
def test_bad_data(data: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Images.of(data)


def test_bytes_are_divided_at_one_door_alone() -> None:
    with pytest.raises(InputError, match=r"got torch.uint8; this looks like 0-255 data: divide by 255"):
        Images(bytes_of())
    assert Images.of(bytes_of()).hash == Images.from_uint8(bytes_of()).hash


def test_pixels_must_be_a_tensor() -> None:
    with pytest.raises(InputError, match=r"must be a tensor, not list; Images.of\(\) takes other forms"):
        Images([[0.5]])  # type: ignore[arg-type]


def test_a_picture_that_breaks_off_is_named_when_it_is_read() -> None:
    buffer = io.BytesIO()
    picture("RGB", 64).save(buffer, "JPEG")
    broken = Image.open(io.BytesIO(buffer.getvalue()[:-200]))
    with pytest.raises(InputError, match="Image 1 cannot be read: "):
        Images.of([picture("RGB", 64), broken])


@given(st.integers(1, 60), st.integers(1, 80))
def test_positions_spread_over_a_set(size: int, count: int) -> None:
    found = Images(torch.rand(size, 1, 1, 1)).spread(count).tolist()
    assert len(set(found)) == len(found) == min(size, count)
    assert found == sorted(found)
    if len(found) > 1:
        assert (found[0], found[-1]) == (0, size - 1)
        gaps = [b - a for a, b in pairwise(found)]
        assert max(gaps) - min(gaps) <= 1
