from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import Erasure, InputError, mask
from recollect.degradation import PAPER_MASKS, Blur, degradation, random_mask

SIZES = [32, 64]


def erased(name: str, h: int) -> np.ndarray:
    erasure = mask(name, (3, h, h))
    assert erasure.keep.shape == (1, 1, h, h)  # a pixel goes in all channels
    return ~erasure.keep[0, 0].numpy()


def test_the_six_are_numbered_as_in_the_paper() -> None:
    assert list(PAPER_MASKS) == ["block", "half", "scatter", "frame", "stripes", "dust"]
    assert all(named.name == name and named.summary.startswith("erases ") for name, named in PAPER_MASKS.items())


@pytest.mark.parametrize("h", SIZES)
@pytest.mark.parametrize(("name", "share"), [("block", 1 / 4), ("half", 1 / 2), ("frame", 7 / 16), ("stripes", 1 / 2)])
def test_the_erased_share_is_exact(name: str, share: float, h: int) -> None:
    assert erased(name, h).mean() == share


@pytest.mark.parametrize("h", SIZES)
@pytest.mark.parametrize(("name", "share"), [("scatter", 0.5), ("dust", 0.8)])
def test_the_erased_share_of_a_draw(name: str, share: float, h: int) -> None:
    assert abs(erased(name, h).mean() - share) < 4 * np.sqrt(share * (1 - share)) / h


@pytest.mark.parametrize("h", SIZES)
def test_the_geometry(h: int) -> None:
    row, column = np.mgrid[:h, :h]
    inner = (h // 4 <= row) & (row < h - h // 4) & (h // 4 <= column) & (column < h - h // 4)
    framed = (h // 8 <= row) & (row < h - h // 8) & (h // 8 <= column) & (column < h - h // 8)
    assert np.array_equal(erased("block", h), inner)
    assert np.array_equal(erased("half", h), row >= h // 2)
    assert np.array_equal(erased("frame", h), ~framed)
    assert np.array_equal(erased("stripes", h), row // (h // 16) % 2 == 1)


def test_draws_are_fixed_and_different() -> None:
    for name in ("scatter", "dust"):
        assert np.array_equal(erased(name, 32), erased(name, 32))
    assert not np.array_equal(erased("scatter", 32), erased("dust", 32))
    known = {"scatter": 502, "dust": 837}  # as first drawn: a change would change every result
    assert {name: int(erased(name, 32).sum()) for name in known} == known


@pytest.mark.parametrize("name", list(PAPER_MASKS))
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 24, 40), (3, 33, 33)])
def test_other_sizes_lose_some_and_keep_some(name: str, shape: tuple[int, int, int]) -> None:
    keep = mask(name, shape).keep
    assert keep.shape == (1, 1, *shape[1:])
    assert 0 < keep.double().mean() < 1


# Masks of the user's own


@pytest.mark.parametrize("shape", [(8, 6), (1, 8, 6), (3, 8, 6), (1, 1, 8, 6), (5, 3, 8, 6)])
def test_arrays_of_any_rank(shape: tuple[int, ...]) -> None:
    keep = np.random.default_rng(0).random(shape) < 0.5
    made = mask(keep, (3, 8, 6)).keep
    assert made.ndim == 4
    assert np.array_equal(made.numpy().reshape(shape), keep)


def test_an_array_with_channels_last() -> None:
    keep = np.random.default_rng(0).random((8, 6, 3)) < 0.5
    assert np.array_equal(mask(keep, (3, 8, 6)).keep[0].numpy(), keep.transpose(2, 0, 1))


@pytest.mark.parametrize("values", [[0, 1], [0, 255], [0.0, 1.0], [False, True]])
def test_black_is_erased_and_white_kept(values: list) -> None:
    assert mask(np.array([values, values]), (1, 2, 2)).keep.flatten().tolist() == [False, True, False, True]
    assert mask(torch.tensor([values, values]), (1, 2, 2)).keep.flatten().tolist() == [False, True, False, True]


def test_an_erasure_passes_when_it_fits() -> None:
    own = Erasure(torch.tensor([[[[True, False]]]]))
    assert torch.equal(mask(own, (3, 1, 2)).keep, own.keep)
    with pytest.raises(InputError, match=r"The mask has shape \(1, 1, 1, 2\); the images are 3x4x4"):
        mask(own, (3, 4, 4))


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "P", "RGBA", "LA"])
def test_a_png(tmp_path: Path, mode: str) -> None:
    keep = np.random.default_rng(0).random((8, 6)) < 0.5
    Image.fromarray(keep.astype(np.uint8) * 255).convert(mode).save(tmp_path / "mask.png")
    assert np.array_equal(mask(tmp_path / "mask.png", (3, 8, 6)).keep[0, 0].numpy(), keep)
    assert np.array_equal(mask(str(tmp_path / "mask.png"), (3, 8, 6)).keep[0, 0].numpy(), keep)


def test_a_npy_file(tmp_path: Path) -> None:
    keep = np.random.default_rng(0).random((2, 3, 8, 6)) < 0.5
    np.save(tmp_path / "mask.npy", keep)
    assert np.array_equal(mask(tmp_path / "mask.npy", (3, 8, 6)).keep.numpy(), keep)


def test_a_random_share_for_all() -> None:
    keep = mask("random:0.3", (3, 64, 64), count=9).keep
    assert keep.shape == (1, 1, 64, 64)
    assert abs((~keep).double().mean() - 0.3) < 0.03
    assert torch.equal(keep, mask("random:30%", (3, 64, 64)).keep)
    assert not torch.equal(keep, mask("random:0.3", (3, 64, 64), seed=1).keep)


def test_a_random_share_for_each() -> None:
    keep = mask("random-each:0.5", (3, 32, 32), count=5).keep
    assert keep.shape == (5, 1, 32, 32)
    assert len({tuple(k.flatten().tolist()) for k in keep}) == 5
    assert torch.equal(keep[:3], mask("random-each:0.5", (3, 32, 32), count=3).keep)  # whatever comes after


@pytest.mark.parametrize(("fraction", "kept"), [(0.0, 1.0), (1.0, 0.0)])
def test_none_and_all(fraction: float, kept: float) -> None:
    assert random_mask(fraction, (1, 8, 8)).keep.double().mean() == kept


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("blok", r"There is no mask 'blok'. Known: block, half, scatter, frame, stripes, dust, random:FRACTION"),
        ("random:lots", r"'lots' is not a fraction; write random:0.3 or random:30%"),
        ("random:1.5", r"fraction of erased pixels must lie in \[0, 1\], got 1.5"),
        ("random:nan", r"must lie in \[0, 1\], got nan"),
        ("nowhere.png", r"There is no mask file nowhere.png"),
        (np.zeros((8, 9), dtype=bool), r"The mask has shape \(8, 9\); the images are 3x8x8 \(C x H x W\)"),
        (np.zeros((2, 8, 8), dtype=bool), r"The mask has shape \(2, 8, 8\); the images are 3x8x8"),
        (np.zeros((1, 1, 1, 8, 8), dtype=bool), r"The mask has shape \(1, 1, 1, 8, 8\)"),
        (np.full((8, 8), 0.5), r"black \(erased\) or white \(kept\), nothing between; found 0.5"),
        (np.arange(64).reshape(8, 8), r"nothing between; found 0, 1, 2, 3 \.\.\."),
        (np.full((8, 8), np.nan), r"nothing between; found nan"),
        (None, r"A mask is an array of kept \(True\) and erased \(False\) pixels, not NoneType"),
    ],
)
def test_bad_masks(what: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mask(what, (3, 8, 8))


def test_bad_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    grey, clear, deep = tmp_path / "grey.png", tmp_path / "clear.png", tmp_path / "deep.png"
    Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(grey)
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(clear)
    Image.fromarray(np.full((8, 8), 65535, np.uint16)).save(deep)
    for path, message in [(grey, "nothing between"), (clear, "partly transparent"), (deep, "more than 8 bits")]:
        with pytest.raises(InputError, match=message):
            mask(path, (3, 8, 8))
    for name, content in [("text.png", b"hello"), ("text.npy", b"hello"), ("empty.npy", b"")]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name} cannot be read"):
            mask(tmp_path / name, (3, 8, 8))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"objects.npy cannot be read"):
        mask(tmp_path / "objects.npy", (3, 8, 8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mask([[1, 0], [1]], (3, 4, 4)), "not list"),
        (lambda: mask("block", (3, 1, 4, 4)), r"C x H x W, such as images.shape; got \(3, 1, 4, 4\)"),
        (lambda: mask("block", (3, 0)), r"such as images.shape; got \(3, 0\)"),
        (lambda: mask("random-each:0.5", (3, 4, 4), count=0), "at least one image, got count=0"),
    ],
)
def test_bad_calls(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_decompression_bomb_is_refused_by_name(tmp_path: Path) -> None:
    Image.new("1", (20_000, 10_000)).save(tmp_path / "bomb.png")
    with pytest.raises(InputError, match=r"bomb.png cannot be read: .*decompression bomb"):
        mask(tmp_path / "bomb.png", (3, 4, 4))


# Signals and rows


@pytest.mark.parametrize("shape", [(1, 64), (5, 64), (64,)])
@pytest.mark.parametrize(
    ("name", "erased"), [("block", 16), ("half", 32), ("scatter", 32), ("frame", 28), ("stripes", 32), ("dust", 51)]
)
def test_named_masks_erase_the_same_shares_of_signals_and_rows(name: str, erased: int, shape: tuple[int, ...]) -> None:
    keep = mask(name, shape).keep
    assert keep.shape == (1, *[1] * (len(shape) - 1), 64)
    assert int((~keep).sum()) == erased


def test_a_block_is_the_middle_run_and_a_frame_leaves_it() -> None:
    assert (~mask("block", (16,)).keep[0]).nonzero().flatten().tolist() == [6, 7, 8, 9]
    assert mask("frame", (16,)).keep[0].nonzero().flatten().tolist() == list(range(3, 12))
    assert (~mask("half", (5,)).keep[0]).nonzero().flatten().tolist() == [2, 3, 4]


@pytest.mark.parametrize("name", [*PAPER_MASKS, "random:1%", "random:99%", "random-each:0.5"])
@pytest.mark.parametrize("columns", [2, 3, 7])
def test_short_rows_keep_something_and_lose_something(name: str, columns: int) -> None:
    keep = mask(name, (columns,), count=20).keep
    assert keep.any(1).all()
    assert (~keep).any(1).all()


def test_random_masks_erase_exactly_their_share_of_signals() -> None:
    keep = mask("random-each:30%", (3, 50), count=4).keep
    assert keep.shape == (4, 1, 50)
    assert (~keep).sum(2).flatten().tolist() == [15] * 4
    assert len({tuple(one.flatten().tolist()) for one in keep}) == 4
    assert mask("random:0", (50,)).keep.all()
    assert not mask("random:1", (50,)).keep.any()


def test_columns_are_erased_by_name_and_number() -> None:
    names = ["age", "income", "a-b", "3"]
    for text, erased in (("age", [0]), ("a-b+income", [1, 2]), ("1-2", [1, 2]), ("0+2", [0, 2]), ("3", [3])):
        keep = mask(f"columns:{text}", (4,), columns=names).keep
        assert (~keep[0]).nonzero().flatten().tolist() == erased


def test_columns_of_signals_are_channels() -> None:
    keep = mask("columns:1", (3, 5)).keep
    assert keep.shape == (1, 3, 5)
    assert keep.all(2).flatten().tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("columns:age", (4,), "no column 'age'; columns have numbers from 0 to 3"),
        ("columns:4", (4,), "no column '4'; columns have names a, b or numbers from 0 to 3"),
        ("columns:2-1", (4,), "no column '2-1'"),
        ("columns:", (4,), "no column ''"),
        ("columns:0", (3, 4, 4), "columns:0 erases columns of rows or channels of signals; these are images"),
    ],
)
def test_columns_that_are_not_there(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mask(text, shape, columns=["a", "b"] if "names" in message else ())


def test_arrays_for_signals_and_rows() -> None:
    assert mask(np.array([True, False, True]), (3,)).keep.shape == (1, 3)
    assert mask(np.ones((5, 3), bool), (3,)).keep.shape == (5, 3)
    assert mask(np.array([True, False, True]), (2, 3)).keep.shape == (1, 1, 3)
    assert mask(np.ones((2, 3), bool), (2, 3)).keep.shape == (1, 2, 3)
    with pytest.raises(InputError, match=r"The mask has shape \(4,\); the images are 2x3\.$"):
        mask(np.ones(4, bool), (2, 3))


def test_damage_of_images_alone_says_so() -> None:
    for text in ("blur:1", "coarse:2"):
        for shape in ((4,), (1, 4)):
            with pytest.raises(InputError, match="is damage to images, C x H x W; these have the shape"):
                degradation(text, shape)
    with pytest.raises(InputError, match="blur is damage to images"):
        Blur(torch.ones(1)).expand(torch.rand(2, 3, 4))
