from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.sources import SOURCES
from recollect.sources.address import Address, parse


def parsed(spec: str) -> Address:
    return parse(spec, SOURCES)


def test_every_part_of_an_address_is_read() -> None:
    address = parsed("tiny-imagenet:some/dir?per-class=3&seed=7&size=32&part=control")
    assert address == Address("tiny-imagenet", "some/dir", None, 3, 7, 32, part="control")


def test_conversions_are_read_and_written() -> None:
    address = parsed("cifar10:x?resize=64x48&grey=1")
    assert (address.resize, address.grey) == ((64, 48), True)
    assert str(address) == "cifar10:x?resize=64x48&grey=1"
    assert parsed("cifar10:x?resize=64").resize == (64, 64)
    assert str(parsed("cifar10:x?grey=0")) == "cifar10:x"


def test_a_folder_that_is_there_needs_no_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parsed("pictures?size=8").source == "folder"
    assert parsed("photos").source == "photos"  # the name of a source is one


def test_defaults_are_filled_in_and_written_out() -> None:
    assert str(parsed("photos")) == "photos?count=50&size=32&seed=42&part=train"
    assert str(parsed("photos?per-class=2")) == "photos?per-class=2&size=32&seed=42&part=train"
    assert str(parsed("cifar10:x")) == "cifar10:x"


@pytest.mark.parametrize(
    ("spec", "source", "path"),
    [
        ("a/b.npy", "array", "a/b.npy"),
        ("B.NPZ?count=3", "array", "B.NPZ"),
        ("weights.safetensors", "array", "weights.safetensors"),
        ("./photos", "folder", "./photos"),
        ("~/pictures?size=8", "folder", "~/pictures"),
        (r"C:\pictures\mine", "folder", r"C:\pictures\mine"),
        (r"C:\images.npy", "array", r"C:\images.npy"),
        ("folder:what?/is this:100%?count=2", "folder", "what?/is this:100%"),
    ],
)
def test_paths_are_taken_as_they_are(spec: str, source: str, path: str) -> None:
    address = parsed(spec)
    assert (address.source, address.path) == (source, path)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("mnist", "photos, cifar10, svhn, tiny-imagenet, folder, array"),
        ("mnist:path", "There is no source 'mnist'"),
        ("a" * 300, "There is no source 'aaa"),
        ("cifar10:x?resize=0", "neither a side in pixels"),
        ("cifar10:x?resize=4x5x6", "neither a side in pixels"),
        ("cifar10:x?resize=8&size=8", "gives both size"),
        ("cifar10:x?grey=yes", "grey=yes is unknown"),
        ("photos?colour=red", "count, per-class, seed, size, resize, grey, part"),
        ("cifar10:x?bad=skip", "no parameter 'bad'"),
        ("photos?count", "parameter=value"),
        ("photos?count=3&count=4", "given twice"),
        ("photos?count=3&per-class=4", "both count and per-class"),
        ("photos?count=0", "count=0 is not a whole number of at least 1"),
        ("photos?count=-3", "count=-3"),
        ("photos?count=1e3", "count=1e3"),
        ("photos?seed=x", "seed=x"),
        ("cifar10:x?seed=7", "seed=7 says which images are drawn, and none are; add count=N, or leave seed out"),
        ("photos?size=", "size="),
        ("photos?part=test", "train or control"),
        ("photos:here", "takes no path"),
        ("folder", "folder:PATH"),
        ("folder:", "PATH"),
        ("", "no source ''"),
    ],
)
def test_mistakes_are_refused_with_what_exists(spec: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(spec)
    assert expected in str(error.value)


def test_something_other_than_text_is_refused() -> None:
    with pytest.raises(InputError, match="got an int"):
        parse(3, SOURCES)  # type: ignore[arg-type]


@given(
    name=st.sampled_from(["cifar10", "svhn", "tiny-imagenet"]),
    path=st.sampled_from(["", "a b/c", "x?y/z", "C:/d"]),
    how=st.sampled_from(["", "count", "per-class"]),
    number=st.integers(1, 10**6),
    seed=st.integers(0, 2**32),
    part=st.sampled_from(["train", "control"]),
)
def test_an_address_written_out_reads_as_itself(
    name: str, path: str, how: str, number: int, seed: int, part: str
) -> None:
    tail = f"?{how}={number}&seed={seed}&part={part}" if how else ""
    address = parsed(f"{name}{':' if path else ''}{path}{tail}")
    assert parsed(str(address)) == address
