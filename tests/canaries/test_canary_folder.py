import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from recollect import InputError, load
from recollect.canaries import open_canaries, write_canaries
from recollect.canaries.canary_folder import FORMAT, LIST
from recollect.records import read_sealed, write_sealed
from tests.canaries.making import small_canaries


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_canaries(small_canaries(), tmp_path_factory.mktemp("canaries") / "new")


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "canaries"))


def test_canaries_are_read_as_they_were_written(written: Path) -> None:
    again, canaries = open_canaries(written), small_canaries()
    assert again.commitment == canaries.commitment
    assert again.train.hash == canaries.train.hash
    assert np.array_equal(again.inside, canaries.inside)


def test_the_files_to_train_on_are_all_copies(written: Path) -> None:
    files, images = load(f"folder:{written}/train"), small_canaries().training_images
    assert sorted(files.ids) == sorted(f"{name}.png" for name in images.ids)
    order = np.argsort(images.ids).tolist()
    assert files.hash == images[order].hash


def test_a_folder_is_used_once(written: Path) -> None:
    with pytest.raises(InputError, match="drawn once, into a new folder"):
        write_canaries(small_canaries(), written)


def test_a_folder_that_a_killed_run_left_is_finished(folder: Path, written: Path) -> None:
    (folder / LIST).unlink()
    (folder / "train" / ".known-0000-01.png.x.unfinished").touch()
    (folder / "audit" / "canary-0003.png").write_bytes(b"half")
    write_canaries(small_canaries(), folder)
    contents = [{path.relative_to(at): path.read_bytes() for path in at.rglob("*.*")} for at in (folder, written)]
    assert contents[0] == contents[1]
    (folder / LIST).unlink()
    (folder / "audit" / "mine.png").touch()
    with pytest.raises(InputError, match="drawn once, into a new folder"):
        write_canaries(small_canaries(), folder)


def paint(folder: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(folder / "audit" / "canary-0003.png")


def shrink(folder: Path) -> None:
    Image.new("RGB", (4, 4), "red").save(folder / "audit" / "canary-0003.png")


def edit(folder: Path) -> None:
    content = json.loads((folder / LIST).read_text())
    content["delta"] = 0.5
    (folder / LIST).write_text(json.dumps(content))


def resealed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit_and_seal(folder: Path) -> None:
        content = read_sealed(folder / LIST, FORMAT, "a list of canaries")
        change(content)
        write_sealed(folder / LIST, FORMAT, content)

    return edit_and_seal


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder: (folder / LIST).unlink(), "holds no canaries"),
        (lambda folder: (folder / "audit" / "known-0000.png").unlink(), "known-0000.png cannot be read"),
        (paint, "canary-0003.png was changed after it was made"),
        (shrink, "differ in size"),
        (edit, "its checksum does not fit"),
        (
            resealed(lambda content: content["canaries"][0].update({"in": not content["canaries"][0]["in"]})),
            "commitment",
        ),
        (resealed(lambda content: content.update(delta=1e-9)), "commitment"),
        (resealed(lambda content: content["canaries"][0].update(repeats=-1)), "repeats are whole numbers"),
        (resealed(lambda content: content.pop("rules")), "that can be used: KeyError"),
        (resealed(lambda content: content.update(known=3)), "that can be used: TypeError"),
        (resealed(lambda content: content.update(canaries=[])), "that can be used"),
    ],
)
def test_what_was_changed_is_refused(folder: Path, change: Callable[[Path], object], why: str) -> None:
    change(folder)
    with pytest.raises(InputError, match=why) as refused:
        open_canaries(folder)
    assert "\n" not in str(refused.value)
