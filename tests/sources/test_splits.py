import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from recollect.errors import InputError
from recollect.images import Images
from recollect.sources import Split, load, reproduce, split

Tiny = Callable[..., Path]


def test_a_split_is_made_of_the_two_parts(tiny: Tiny) -> None:
    spec = f"tiny-imagenet:{tiny()}?per-class=2&seed=9"
    made = split(spec)
    assert made.train.hash == load(spec).hash
    assert made.control.hash == load(f"{spec}&part=control").hash
    assert not set(made.train.ids) & set(made.control.ids)


def test_a_split_is_reproduced_from_its_record_alone(tiny: Tiny) -> None:
    made = split(f"tiny-imagenet:{tiny()}?per-class=2")
    record = json.loads(json.dumps(made.record()))
    again = reproduce(record)
    assert (again.train.hash, again.control.hash) == (made.train.hash, made.control.hash)
    assert (again.train.ids, again.control.ids) == (made.train.ids, made.control.ids)
    assert again.record() == made.record()


def test_the_record_goes_by_ids_not_by_the_draw(tiny: Tiny) -> None:
    made = split(f"tiny-imagenet:{tiny()}?per-class=2")
    record = made.record()
    record["train"]["ids"].reverse()
    record["train"]["sha256"] = made.train[list(range(7, -1, -1))].hash
    assert reproduce(record).train.ids == made.train.ids[::-1]


def test_moved_files_are_found_again(tiny: Tiny, tmp_path: Path) -> None:
    path = tiny()
    record = split(f"tiny-imagenet:{path}?per-class=2").record()
    moved = path.rename(tmp_path / "moved.zip")
    with pytest.raises(InputError, match="no Tiny ImageNet"):
        reproduce(record)
    again = reproduce(record, source=f"tiny-imagenet:{moved}")
    assert list(again.control.ids) == record["control"]["ids"]


def test_changed_pixels_are_noticed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 256, (10, 1, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "a.npy", values)
    made = split(f"{tmp_path}/a.npy?count=5")
    record = made.record()
    changed = int(made.control.ids[2])
    values[changed, 0, 1, 1] ^= 1
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match="The control set has the ids of the record but other pixels"):
        reproduce(record)


def test_missing_images_are_noticed(tiny: Tiny) -> None:
    path = tiny()
    record = split(f"tiny-imagenet:{path}?per-class=2").record()
    tiny(classes=3)
    with pytest.raises(InputError, match=r"lacks 2 images of the record, such as 'n00000003_"):
        reproduce(record)


def test_verify_says_what_differs() -> None:
    pixels = torch.rand(4, 1, 2, 2)
    made = Split(Images(pixels[:2], ["a", "b"]), Images(pixels[2:], ["c", "d"]))
    made.verify(made.record())
    others = Split(Images(pixels[:2], ["a", "x"]), made.control)
    with pytest.raises(InputError, match=r"train set is another .* image 1 is 'x' instead of 'b'"):
        others.verify(made.record())
    with pytest.raises(InputError, match="1 images instead of 2"):
        Split(made.train, made.control[:1]).verify(made.record())
    with pytest.raises(InputError, match="other pixels"):
        Split(Images(pixels[2:], ["a", "b"]), made.control).verify(made.record())


@pytest.mark.parametrize("record", [{}, {"train": {}}, {"train": 3, "control": 4}])
def test_what_is_no_record_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(InputError, match="no whole 'train' entry"):
        reproduce(record)


def test_control_may_be_spelled_on_its_own(tiny: Tiny) -> None:
    path = tiny(each=6)
    made = split(f"tiny-imagenet:{path}?per-class=5", f"tiny-imagenet:{path}?per-class=1&part=control")
    assert (len(made.train), len(made.control)) == (20, 4)


def test_overlapping_sets_are_refused(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny(each=6)
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match=r"share 8 images, such as n0000000\d_\d: "):
        split(f"tiny-imagenet:{path}?per-class=5", f"tiny-imagenet:./{path.name}?per-class=3&part=control")
    with pytest.raises(InputError, match="24 images"):
        split(f"tiny-imagenet:{path}", f"tiny-imagenet:{path}")
    with pytest.raises(InputError, match="Train has seed 1 and control 2"):
        split(f"tiny-imagenet:{path}?per-class=2&seed=1", f"tiny-imagenet:{path}?per-class=2&seed=2&part=control")
    with pytest.raises(InputError, match="not for how many"):
        split(f"tiny-imagenet:{path}")


def test_sets_of_different_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"differ in size \(images of 1x2x2 and images of 1x2x3\)"):
        Split(Images(torch.rand(1, 1, 2, 2)), Images(torch.rand(1, 1, 2, 3)))


def test_one_file_spelled_two_ways_is_still_one_file(tiny: Tiny) -> None:
    path = tiny(each=6)
    with pytest.raises(InputError, match="Train has seed 42 and control 7"):
        split(f"tiny-imagenet:{path}?per-class=3", f"tiny-imagenet:{path.parent}?per-class=3&part=control&seed=7")


@pytest.mark.parametrize("record", [[], {"train": {"source": "photos", "sha256": "", "ids": 5}}])
def test_a_record_of_another_form_is_refused(record: object) -> None:
    with pytest.raises(InputError, match="no whole 'train' entry"):
        reproduce(record)  # type: ignore[arg-type]


def test_a_control_set_that_is_the_train_set_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match=r"4 images, .* give control as part=control\.$"):
        split("photos?count=4&size=8", "photos?count=4&size=8")
