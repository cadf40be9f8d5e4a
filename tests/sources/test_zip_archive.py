import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.sources import load
from recollect.sources.open_source import IN_MEMORY_BYTES
from tests.sources.conftest import encoded

Values = Callable[..., np.ndarray]
NAMES = ("a.png", "cats/b.BMP", "cats/c.png", "dogs/small/d.tiff", "dogs/e.png")


@pytest.fixture
def both(tmp_path: Path, values: Values) -> tuple[Path, Path]:
    """A folder of images, and a zip of it with things beside them that are no images."""
    folder, path = tmp_path / "pictures", tmp_path / "pictures.zip"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values(8, 8, 3)).save(folder / name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NAMES:
            archive.write(folder / name, name)
        for name in ("notes.txt", ".hidden.png", ".git/x.png", "__MACOSX/y.png", "no_ending"):
            archive.writestr(name, b"not an image")
    return folder, path


def test_a_zip_holds_the_images_of_its_folder(both: tuple[Path, Path]) -> None:
    folder, path = both
    images = load(f"zip:{path}")
    assert images.ids == tuple(sorted(NAMES))
    assert images.hash == load(str(folder)).hash == load(path).hash  # a bare path does as well
    for change in ("?count=3&seed=2", "?count=2&part=control", "?size=4&grey=1"):
        assert load(f"{path}{change}").hash == load(f"{folder}{change}").hash


def test_a_large_zip_stays_where_it_is(tmp_path: Path, values: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = values(70, 8, 8, 3)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number, picture in enumerate(pictures):
            archive.writestr(f"{number:02}.png", encoded(Image.fromarray(picture), "PNG"))
    whole = load(tmp_path / "a.zip")
    monkeypatch.setenv(IN_MEMORY_BYTES.variable, "1000")
    left = load(tmp_path / "a.zip")
    assert (whole.hash, len(left)) == (left.hash, 70)
    (tmp_path / "a.zip").unlink()
    assert whole.pixels.shape == (70, 3, 8, 8)
    with pytest.raises(InputError, match="There is no file"):
        _ = left[:3].pixels


def archive_of(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, values: Values) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 nonsense")
    archive_of(tmp_path / "none.zip", "notes.txt", b"hello")
    archive_of(tmp_path / "text.zip", "a.png", b"no image")
    picture = encoded(Image.fromarray(values(8, 8, 3)), "PNG")
    damaged = archive_of(tmp_path / "damaged.zip", "a.png", picture)
    damaged.write_bytes(damaged.read_bytes().replace(b"IDAT", b"IDAX").replace(picture[60:90], bytes(30)))
    unsupported = archive_of(tmp_path / "way.zip", "a.png", picture)
    unsupported.write_bytes(unsupported.read_bytes().replace(b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x61\0"))
    for name, words in [
        ("broken.zip", "is not a readable zip file"),
        ("none.zip", "holds nothing that ends like an image file"),
        ("text.zip", r"1 of 1 files cannot be used. a.png cannot be read as an image"),
        ("damaged.zip", "1 of 1 files cannot be used. a.png"),
        ("way.zip", "a.png: It cannot be read from the archive: .*compression method"),
        ("absent.zip", "There is no file"),
    ]:
        with pytest.raises(InputError, match=words):
            load(tmp_path / name)


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive_of(tmp_path / "bomb.zip", "a.png", bytes(3_000_000))
    monkeypatch.setenv("RECOLLECT_MAX_SET_GROWTH", "1000000")
    with pytest.raises(InputError, match=r"unpacks to 3,000,000.*RECOLLECT_MAX_SET_GROWTH"):
        load(path)


def test_too_many_images_are_refused(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_MAX_IMAGES", "4")
    with pytest.raises(InputError, match=r"holds 5 images.*RECOLLECT_MAX_IMAGES"):
        load(both[1])
