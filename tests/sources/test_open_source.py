import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.sources import SOURCES, load
from recollect.sources.address import parse
from recollect.sources.open_source import open_catalogue
from tests.sources.conftest import kept_as_bytes

Tiny = Callable[..., Path]


def test_real_sets_are_kept_as_bytes(tiny: Tiny) -> None:
    assert kept_as_bytes(load(f"tiny-imagenet:{tiny()}"))


def test_the_name_is_the_whole_address(tiny: Tiny) -> None:
    path = tiny()
    images = load(f"tiny-imagenet:{path}?per-class=1")
    assert images.name == f"tiny-imagenet:{path}?per-class=1&seed=42&part=train"
    assert load(images.name).hash == images.hash


def test_a_path_may_be_left_out_when_the_cache_has_it(
    cifar: tuple[Path, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    images = load("cifar10?count=5")
    assert images.hash == load(f"cifar10:{cifar[0]}?count=5").hash
    assert images.name == "cifar10?count=5&seed=42&part=train"  # says nothing of where the cache is


@pytest.mark.parametrize("name", ["cifar10", "svhn", "tiny-imagenet"])
def test_without_path_and_cache_it_says_what_to_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=f"recollect data fetch {name}. Or say where you have it: {name}:PATH"):
        load(name)
    with pytest.raises(InputError) as error:
        load(f"{name}:{tmp_path}/other")
    assert "fetch" not in str(error.value)


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "a.npy", np.full((2, 1, 4, 4), 0.5))
    assert len(load("~/a.npy")) == 2


def test_every_source_says_what_it_is_and_its_example_can_be_parsed() -> None:
    for source in SOURCES.values():
        assert source.summary
        assert parse(source.example, SOURCES).source == source.name


def test_listing_reads_no_pixels(tiny: Tiny) -> None:
    catalogue = open_catalogue(parse(f"tiny-imagenet:{tiny(1, 1, {})}", SOURCES))
    assert catalogue.ids == ["n00000000_0"]


def test_everything_that_needs_only_torch_numpy_and_pillow_does(
    tiny: Tiny, cifar: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", np.full((2, 1, 4, 4), 0.5))
    script = f"""
import sys
for name in ("scipy", "skimage", "pooch", "requests", "tqdm", "rich", "typer", "safetensors", "pandas"):
    sys.modules[name] = None
import recollect.sources as sources
from recollect.duplicates import find_duplicates
from recollect.errors import InputError
assert "PIL" not in sys.modules
split = sources.split({f"tiny-imagenet:{tiny()}?per-class=2"!r})
find_duplicates(split.train, split.control)
sources.load({f"cifar10:{cifar[0]}"!r}), sources.load({str(tmp_path / "a.npy")!r})
try:
    sources.load("photos")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install scikit-image" in done.stdout
