import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.sources import load
from recollect.sources.folder import SkippedFiles
from tests.sources.conftest import eight_bit

Values = Callable[..., np.ndarray]


def save(pixels: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def pictures(tmp_path: Path, values: Values) -> tuple[Path, dict[str, np.ndarray]]:
    """A nested folder of 8x8 colour images in three formats, with things beside them that are no images."""
    folder = tmp_path / "pictures"
    made = {name: values(8, 8, 3) for name in ("a.png", "cats/b.BMP", "cats/c.png", "dogs/small/d.tiff", "dogs/e.png")}
    for name, pixels in made.items():
        save(pixels, folder / name)
    for name in ("notes.txt", ".hidden.png", ".git/x.png", "__MACOSX/y.png", "labels.h5", "no_ending"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not an image")
    return folder, made


def test_every_image_file_and_nothing_else_is_read(pictures: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, made = pictures
    images = load(f"folder:{folder}")
    assert images.ids == tuple(sorted(made))
    for position, name in enumerate(images.ids):
        assert np.array_equal(eight_bit(images)[position], made[name].transpose(2, 0, 1)), name
    assert load(str(folder)).hash == images.hash  # a bare path does as well


def test_folders_are_classes(tmp_path: Path, values: Values) -> None:
    for path in ("a", "b", "c/deep"):
        for number in range(6):
            save(values(4, 4, 3), tmp_path / path / f"{number}.png")
    for part in ("train", "control"):
        ids = load(f"folder:{tmp_path}?per-class=2&part={part}").ids
        assert sorted(name.rsplit("/", 1)[0] for name in ids) == ["a", "a", "b", "b", "c/deep", "c/deep"]


def test_grey_stays_grey_and_a_mixture_becomes_colour(tmp_path: Path, values: Values) -> None:
    grey = values(4, 4)
    save(grey, tmp_path / "a.png")
    save(grey, tmp_path / "b.png")
    assert load(f"folder:{tmp_path}").shape == (1, 4, 4)
    save(values(4, 4, 3), tmp_path / "c.png")
    mixed = load(f"folder:{tmp_path}")
    assert mixed.shape == (3, 4, 4)
    assert np.array_equal(eight_bit(mixed)[0], np.stack([grey] * 3))


def test_sizes_must_agree_unless_one_is_asked_for(tmp_path: Path, values: Values) -> None:
    save(values(12, 12, 3), tmp_path / "a.png")
    save(values(12, 20, 3), tmp_path / "b.png")
    with pytest.raises(InputError, match=r"differ in size: 12x12 \(1 file, such as a.png\), 20x12 .*Add size=12"):
        load(f"folder:{tmp_path}")
    images = load(f"folder:{tmp_path}?size=4")
    assert images.shape == (3, 4, 4)
    whole = np.asarray(Image.open(tmp_path / "b.png"))[:, 4:16].reshape(4, 3, 4, 3, 3).mean(axis=(1, 3))
    assert np.abs(eight_bit(images)[1].transpose(1, 2, 0) - whole).max() <= 0.5


def test_one_bad_file_is_named_and_refused(pictures: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = pictures
    (folder / "cats" / "bad.png").write_bytes((folder / "a.png").read_bytes()[:60])
    with pytest.raises(InputError, match=r"1 of 6 files cannot be used. cats/bad.png cannot be read .*bad=skip"):
        load(f"folder:{folder}")


def test_bad_files_are_named_and_skipped_when_so_chosen(pictures: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, made = pictures
    expected = load(f"folder:{folder}")
    (folder / "cats" / "bad.png").write_bytes((folder / "a.png").read_bytes()[:60])
    (folder / "0.jpg").write_bytes(b"")
    with pytest.warns(SkippedFiles, match=r"Left out 2 of 7 files .*0.jpg cannot .*cats/bad.png cannot"):
        images = load(f"folder:{folder}?bad=skip")
    assert (images.ids, images.hash) == (expected.ids, expected.hash)
    with pytest.warns(SkippedFiles):
        assert len(load(f"folder:{folder}?bad=skip&count={len(made)}")) == len(made)


def test_a_draw_does_not_change_when_bad_files_come_to_lie_beside(pictures: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = pictures
    before = load(f"folder:{folder}?count=2&bad=skip")
    for number in range(5):
        (folder / f"bad{number}.png").write_bytes(b"")
    with pytest.warns(SkippedFiles):
        assert load(f"folder:{folder}?count=2&bad=skip").ids == before.ids


def test_files_too_small_for_the_size_are_bad_files(tmp_path: Path, values: Values) -> None:
    save(values(9, 9, 3), tmp_path / "a.png")
    save(values(5, 9, 3), tmp_path / "b.png")
    with pytest.raises(InputError, match=r"b.png: size=8 is larger than an image of 9x5"):
        load(f"folder:{tmp_path}?size=8")
    with pytest.warns(SkippedFiles, match=r"b.png: size=8"):
        assert load(f"folder:{tmp_path}?size=8&bad=skip").ids == ("a.png",)


def test_a_folder_of_nothing_but_bad_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"1 of 1 files cannot be used. a.png [^=]*$"):
        load(f"folder:{tmp_path}")
    with pytest.warns(SkippedFiles), pytest.raises(InputError, match="None of the 1 image files"):
        load(f"folder:{tmp_path}?bad=skip")


def test_places_without_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        load(f"folder:{tmp_path}/nowhere")
    with pytest.raises(InputError, match="holds nothing that ends like an image"):
        load(f"folder:{tmp_path}")
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(InputError, match="holds 1 file, but none that ends like an image"):
        load(f"folder:{tmp_path}")
    with pytest.raises(InputError, match=r"refuse .* or skip"):
        load(f"folder:{tmp_path}?bad=ignore")


def test_links_that_go_in_circles_end(tmp_path: Path, values: Values) -> None:
    save(values(4, 4, 3), tmp_path / "a.png")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "broken.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(InputError, match=r"broken.png cannot be read as an image: it is no file"):
        load(f"folder:{tmp_path}")
    (tmp_path / "broken.png").unlink()
    assert load(f"folder:{tmp_path}").ids == ("a.png",)


def test_names_that_are_not_text_are_read(tmp_path: Path, values: Values) -> None:
    try:
        save(values(4, 4, 3), tmp_path / os.fsdecode(b"caf\xe9.png"))
    except OSError:
        pytest.skip("this file system takes only names that are text")
    save(values(4, 4, 3), tmp_path / "ü.png")
    assert len(load(f"folder:{tmp_path}?count=2")) == 2


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, values: Values) -> None:
    save(values(4, 4, 3), tmp_path / "a.png")
    os.mkfifo(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"b.png cannot be read as an image: it is no file"):
        load(f"folder:{tmp_path}")
