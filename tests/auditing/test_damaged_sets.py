from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from recollect import InputError
from recollect.auditing.damaged_sets import damage, leave_out, load_sets
from tests.auditing.making import images, pictures

ZERO = ["zero"]


def test_train_may_be_anything_that_holds_images(tmp_path: Path) -> None:
    pixels = pictures(3, 1)
    eight_bit = (pixels * 255).round().to(torch.uint8)
    as_pil = [Image.fromarray(p.permute(1, 2, 0).numpy()) for p in eight_bit]
    np.save(tmp_path / "a.npy", eight_bit.numpy())
    forms: list[Any] = [pixels, pixels.numpy(), list(pixels), [p.numpy() for p in pixels], TensorDataset(pixels)]
    forms.append(TensorDataset(pixels, torch.arange(3)))
    for form in forms:
        read = load_sets(form, None)["train"]
        assert torch.equal(read.pixels, pixels)
        assert read.name == "train"
    for form in (as_pil, tmp_path / "a.npy", str(tmp_path / "a.npy")):
        assert torch.equal(load_sets(form, None)["train"].pixels, eight_bit.float() / 255)


def test_a_path_is_a_file_and_never_the_name_of_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.new("L", (4, 4), 9).save(tmp_path / "photos" / "a.png")
    assert load_sets(Path("photos"), None)["train"].shape == (1, 4, 4)


def test_images_keep_their_own_name() -> None:
    assert load_sets(images(2, 1), images(2, 2))["control"].name == "pictures-2"


def test_control_images_must_be_alike() -> None:
    with pytest.raises(InputError, match="images of 3x8x8 and images of 1x8x8"):
        load_sets(images(2, 1), images(2, 2, channels=1))
    with pytest.raises(InputError, match="empty"):
        load_sets([], None)


def test_masks_that_do_not_fit_are_refused_before_any_work() -> None:
    sets = {"train": images(3, 1), "control": images(2, 2)}
    with pytest.raises(InputError, match="no mask 'hlaf'"):
        damage(sets, {"hlaf": "hlaf"}, ZERO, 42)
    for_three = np.eye(8, dtype=bool)[None, None].repeat(3, 0)  # and there are only two control images
    with pytest.raises(InputError, match="'mine' does not fit the control images: 3 degradations"):
        damage(sets, {"mine": for_three}, ZERO, 42)
    for erased, words in ((True, "erases everything"), (False, "erases nothing")):
        with pytest.raises(InputError, match=words):
            damage(sets, {"mine": np.full((8, 8), not erased)}, ZERO, 42)


def test_random_each_draws_for_each_image() -> None:
    damaged = damage({"train": images(3, 1), "control": images(5, 2)}, {"r": "random-each:0.5"}, ZERO, 42)
    assert [len(one.truth) for one in damaged] == [3, 5]


def test_images_left_out_take_their_own_masks_with_them() -> None:
    train, control = images(4, 1), images(4, 2)
    masks = {"each": "random-each:0.5", "half": "half"}
    damaged = damage({"train": train, "control": control}, masks, ZERO, 42)
    left = leave_out(damaged, "train", ["0", "2"])
    assert [one.images.ids for one in left] == [("1", "3")] * 2 + [("0", "1", "2", "3")] * 2  # control has its own ids
    assert torch.equal(left[0].truth.keep, damaged[0].truth.keep[[1, 3]])  # type: ignore[attr-defined]
    assert [len(one.truth) for one in left] == [2, 1, 4, 1]
    assert left[0].images is left[1].images


@pytest.mark.parametrize("name", ["blur:0", "coarse:1"])
def test_damage_that_changes_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"Mask '{name}' changes nothing, so there is nothing to recover"):
        damage({"train": images(3, 1)}, {name: name}, ["zero"], 42)


def test_fills_are_named_with_the_mask_and_have_nothing_to_do_with_a_blur() -> None:
    damaged = damage({"train": images(3, 1)}, {"half": "half", "blur:1": "blur:1"}, ["zero", "noise"], 42)
    assert [one.mask for one in damaged] == ["half", "half+noise", "blur:1"]
    assert [one.black for one in damaged] == [True, False, False]


@pytest.mark.parametrize("fills", [["noise"], ["zero", "images"]])
def test_a_fill_is_refused_where_no_mask_erases(fills: list[str]) -> None:
    with pytest.raises(InputError, match="what erased pixels hold, and blur:1, coarse:2 erase no pixel"):
        damage({"train": images(3, 1)}, {"blur:1": "blur:1", "coarse:2": "coarse:2"}, fills, 42)


def test_masks_of_single_pixels_leave_images_whole_or_erase_them_and_are_refused() -> None:
    """An image that lost nothing would count as recovered."""
    tiny = {"train": images(20, 1, size=1)}
    with pytest.raises(InputError, match=r"'r' erases nothing of \d+ of the 20 train images, .* larger images"):
        damage(tiny, {"r": "random-each:0.5"}, ZERO, 42)
    with pytest.raises(InputError, match="erases everything of 20 of the 20 train images"):
        damage(tiny, {"r": "random-each:1"}, ZERO, 42)
