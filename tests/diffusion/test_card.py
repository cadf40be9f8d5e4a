from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import Images, InputError, load
from recollect.diffusion import Card, Overlap, without
from recollect.diffusion.card import CARD, HASHES
from tests.diffusion.making import pictures


def jpeg(images: Images, quality: int) -> Images:
    """Copies through JPEG: other values, and by eye the same picture."""
    copies = []
    for values in (images.pixels * 255).round().byte().numpy().transpose(0, 2, 3, 1):
        file = BytesIO()
        Image.fromarray(values).save(file, "JPEG", quality=quality)
        copies.append(np.asarray(Image.open(file)))
    return Images.from_uint8(torch.from_numpy(np.stack(copies).transpose(0, 3, 1, 2)))


def halved(images: Images) -> Images:
    return Images(torch.nn.functional.avg_pool2d(images.pixels, 2))


@pytest.fixture(scope="module")
def photos() -> Images:
    return load("photos?count=30&size=32")


def test_what_it_was_trained_on_is_told_apart_from_what_it_was_not(photos: Images) -> None:
    others = load("photos?count=20&size=32&part=control")
    card = Card.of(photos)
    assert card.overlap(photos[:7]) == Overlap(exact=7, near=0, total=7)
    assert card.overlap(others) == Overlap(exact=0, near=0, total=20)
    mixed = Images(torch.cat([others.pixels[:4], photos.pixels[20:23]]))
    assert card.overlap(mixed) == Overlap(exact=3, near=0, total=7)


def test_copies_in_other_values_or_sizes_count_as_near(photos: Images) -> None:
    card = Card.of(photos)
    assert card.overlap(halved(photos)) == Overlap(exact=0, near=30, total=30)
    compressed = card.overlap(jpeg(photos, 75))  # of a crop with little in it, compression changes much of its hash
    assert compressed.exact == 0
    assert compressed.near >= 27
    assert card.overlap(Images(photos.pixels.flip(3))) == Overlap(exact=0, near=30, total=30)  # training mirrors them


def test_one_changed_value_is_no_longer_the_same_content(photos: Images) -> None:
    pixels = photos.pixels[:1].clone()
    pixels[0, 0, 0, 0] = 1 - pixels[0, 0, 0, 0]
    assert Card.of(photos).overlap(Images(pixels)) == Overlap(exact=0, near=1, total=1)


def test_images_that_others_hold_are_left_out(photos: Images) -> None:
    audited = Images(
        torch.cat([photos.pixels[3:5], halved(photos[9:10]).pixels.repeat_interleave(2, 2).repeat_interleave(2, 3)])
    )
    left = without(photos, audited)
    assert set(photos.ids) - set(left.ids) == {photos.ids[i] for i in (3, 4, 9)}
    assert Card.of(left).overlap(audited) == Overlap(0, 0, 3)
    with pytest.raises(InputError, match="leaves none"):
        without(photos, photos)


def test_a_mirrored_copy_is_left_out_whichever_of_the_two_is_mirrored() -> None:
    """Here the mirrored image differs from the copy by 6 signs, and the image from the mirrored copy by 18."""
    rng = torch.Generator().manual_seed(13)
    audited = torch.rand(1, 3, 8, 8, generator=rng)
    copy = (audited.flip(3) + 0.08 * torch.randn(1, 3, 8, 8, generator=rng)).clamp(0, 1)
    images = Images(torch.cat([pictures(4).pixels, copy]))
    assert Card.of(images).overlap(Images(audited)) == Overlap(0, 1, 1)
    left = without(images, Images(audited))
    assert len(left) == 4
    assert Card.of(left).overlap(Images(audited)) == Overlap(0, 0, 1)


def test_bytes_and_floats_of_the_same_values_are_the_same() -> None:
    images = pictures(3)
    first, second = Card.of(images), Card.of(Images(images.pixels))
    assert np.array_equal(first.content, second.content)
    assert np.array_equal(first.perceptual, second.perceptual)


def test_grey_images_have_perceptual_hashes_too() -> None:
    grey = pictures(5, channels=1)
    assert Card.of(grey).overlap(grey[:2]) == Overlap(2, 0, 2)


def test_it_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    card = Card.of(pictures(), "noise", {"steps": 3})
    card.write(tmp_path)
    read = Card.read(tmp_path)
    assert read is not None
    assert (read.trained_on, read.images, read.training) == ("noise", 12, {"steps": 3})
    assert read.images_hash == pictures().hash
    assert read.overlap(pictures()[:5]) == Overlap(5, 0, 5)
    assert Card.read(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("damage", ["format", "field", "hashes", "few hashes"])
def test_a_damaged_card_is_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    Card.of(pictures()).write(tmp_path)
    if damage == "hashes":
        (tmp_path / HASHES).write_bytes(b"nothing")
    elif damage == "few hashes":
        np.save(tmp_path / HASHES, np.load(tmp_path / HASHES)[:3])
    else:
        text = (tmp_path / CARD).read_text()
        changed = {"format": ("recollect-prior-1", "recollect-prior-9"), "field": ("trained_on", "trained_at")}
        (tmp_path / CARD).write_text(text.replace(*changed[damage]))
    with pytest.raises(InputError, match=r"The card of the prior in .* cannot be read"):
        Card.read(tmp_path)
