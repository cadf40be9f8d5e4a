import io
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.sources import load
from tests.sources.conftest import eight_bit, encoded

Tiny = Callable[..., Path]
FIRST = "tiny-imagenet-200/train/n00000000/images/n00000000_0.JPEG"


def test_pixels_are_those_of_the_jpegs_in_the_zip(tiny: Tiny) -> None:
    path = tiny()
    images = load(f"tiny-imagenet:{path}?count=15&seed=1")
    with zipfile.ZipFile(path) as archive:
        for position, name in enumerate(images.ids):
            data = archive.read(f"tiny-imagenet-200/train/{name.split('_')[0]}/images/{name}.JPEG")
            expected = np.asarray(Image.open(io.BytesIO(data))).transpose(2, 0, 1)
            assert np.array_equal(eight_bit(images)[position], expected), name


def test_zip_folder_and_parents_are_the_same(tiny: Tiny, tmp_path: Path) -> None:
    path = tiny(name="tiny-imagenet-200.zip")
    expected = load(f"tiny-imagenet:{path}")
    assert load(f"tiny-imagenet:{tmp_path}").hash == expected.hash
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    for path in (tmp_path / "unpacked", tmp_path / "unpacked" / "tiny-imagenet-200"):
        images = load(f"tiny-imagenet:{path}")
        assert (images.hash, images.ids) == (expected.hash, expected.ids), path


def test_nothing_is_unpacked(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny()
    monkeypatch.chdir(tmp_path)
    load(f"tiny-imagenet:{path}")
    assert list(tmp_path.rglob("*")) == [path]


def test_per_class_is_balanced_and_parts_are_apart(tiny: Tiny) -> None:
    path = tiny(classes=5, each=7)
    parts = [load(f"tiny-imagenet:{path}?per-class=3&part={part}").ids for part in ("train", "control")]
    for ids in parts:
        assert Counter(name.split("_")[0] for name in ids) == {f"n{c:08d}": 3 for c in range(5)}
    assert not set(parts[0]) & set(parts[1])


def test_grey_images_get_three_channels(tiny: Tiny) -> None:
    path = tiny(1, 1, {FIRST: encoded(Image.new("L", (64, 64), 77), "JPEG")})
    images = load(f"tiny-imagenet:{path}")
    assert images.shape == (3, 64, 64)
    assert set(eight_bit(images).flatten().tolist()) == {77}


def test_other_entries_are_ignored(tiny: Tiny) -> None:
    others = {
        "tiny-imagenet-200/val/images/val_0.JPEG": b"x",
        "tiny-imagenet-200/train/n00000000/n00000000_boxes.txt": b"x",
        "__MACOSX/train/n00000000/images/._n00000000_1.JPEG": b"x",
    }
    assert len(load(f"tiny-imagenet:{tiny(2, 2, others)}")) == 4


def test_progress_reaches_the_end(tiny: Tiny) -> None:
    reported: list[tuple[int, int]] = []
    load(f"tiny-imagenet:{tiny(10, 15)}", progress=lambda done, total: reported.append((done, total)))
    assert reported == [(64, 150), (128, 150), (150, 150)]


def test_size_shrinks(tiny: Tiny) -> None:
    path = tiny()
    whole = load(f"tiny-imagenet:{path}").pixels
    small = load(f"tiny-imagenet:{path}?size=32").pixels
    means = whole.unflatten(3, (32, 2)).unflatten(2, (32, 2)).mean((3, 5))
    assert float((small - means).abs().max()) <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (encoded(Image.new("RGB", (64, 64)), "JPEG")[:300], f"{FIRST} cannot be read as an image"),
        (encoded(Image.new("RGB", (64, 64)), "PNG"), f"{FIRST} cannot be read as an image"),
        (encoded(Image.new("RGB", (65, 64)), "JPEG"), f"{FIRST} is 65x64"),
        (b"", f"{FIRST} cannot be read as an image"),
        (bytes(1_000_001), f"{FIRST} claims 1,000,001 bytes"),
    ],
)
def test_a_bad_image_is_refused_by_name(tiny: Tiny, content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        load(f"tiny-imagenet:{tiny(2, 2, {FIRST: content})}")
    assert "1 of 4 files cannot be used" in str(error.value)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["../../train/n00000000/images/n00000000_9.JPEG", "/train/x", "a\\..\\b"])
def test_path_tricks_are_refused(tiny: Tiny, name: str) -> None:
    with pytest.raises(InputError, match="points outside the archive"):
        load(f"tiny-imagenet:{tiny(1, 1, {name: b'x'})}")


def test_a_damaged_zip_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    whole = tiny().read_bytes()
    broken = tmp_path / "broken.zip"
    for content in (b"", b"hello", whole[:-200]):
        broken.write_bytes(content)
        with pytest.raises(InputError, match="not a readable zip"):
            load(f"tiny-imagenet:{broken}")
    at = whole.index(b"\xff\xd8") + 300  # inside the first JPEG: its checksum is now wrong
    broken.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with pytest.raises(InputError, match=r"n00000000_0.JPEG cannot be read from the zip: Bad CRC-32"):
        load(f"tiny-imagenet:{broken}")


def test_missing_and_empty_places_are_refused(tmp_path: Path, tiny: Tiny) -> None:
    with pytest.raises(InputError, match="no Tiny ImageNet at"):
        load(f"tiny-imagenet:{tmp_path}/nowhere")
    with pytest.raises(InputError, match="holds no Tiny ImageNet images"):
        load(f"tiny-imagenet:{tiny(0, 0)}")


def test_the_real_zip(shared: Callable[[str], Path]) -> None:
    path = shared("tiny-imagenet-200.zip")
    train, control = (load(f"tiny-imagenet:{path}?per-class=3&seed=42&part={part}") for part in ("train", "control"))
    assert len(train) == len(control) == 600
    assert train.shape == (3, 64, 64)
    assert 0.4 < float(train.pixels.mean()) < 0.5
    assert not set(train.ids) & set(control.ids)
    large = load(f"tiny-imagenet:{path}?per-class=5&seed=42")
    assert large.ids[:600] == train.ids


@pytest.mark.slow
def test_twenty_five_thousand_real_images_take_little_memory(shared: Callable[[str], Path]) -> None:
    import resource

    path = shared("tiny-imagenet-200.zip")
    load(f"tiny-imagenet:{path}?per-class=1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    images = load(f"tiny-imagenet:{path}?per-class=125")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert len(images) == 25_000
    assert grown < 1.25 * images.pixels.numel()  # a byte a value
