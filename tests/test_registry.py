import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import InputError
from recollect.registry import Registry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package with a base class and one member."""
    folder = tmp_path / "kinds_of_thing"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "base.py").write_text("class Thing:\n    name = ''\n")
    (folder / "first.py").write_text(member("First", "first"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith(("kinds_of_thing", "elsewhere"))]:
        del sys.modules[name]


def member(cls: str, name: str, order: int = 100) -> str:
    return f"from kinds_of_thing.base import Thing\nclass {cls}(Thing):\n    name = {name!r}\n    order = {order}\n"


def registry() -> Registry:
    from kinds_of_thing.base import Thing  # type: ignore[import-not-found]

    return Registry("thing", "kinds_of_thing", Thing)


def install(folder: Path, code: str, value: str) -> None:
    """What pip leaves behind for a package with one file and one entry point."""
    (folder.parent / "elsewhere.py").write_text(code)
    about = folder.parent / "elsewhere-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[kinds_of_thing]\nsecond = {value}\n")


def test_a_new_file_is_a_new_member(package: Path) -> None:
    assert list(registry()) == ["first"]
    (package / "another.py").write_text(member("Another", "another"))
    assert list(registry()) == ["another", "first"]


def test_members_come_in_the_order_they_ask_for(package: Path) -> None:
    (package / "another.py").write_text(member("Another", "another"))
    (package / "leading.py").write_text(member("Leading", "leading", order=1))
    assert list(registry()) == ["leading", "another", "first"]


def test_a_class_imported_into_a_file_is_not_a_second_member(package: Path) -> None:
    (package / "user.py").write_text("from kinds_of_thing.first import First\n")
    assert list(registry()) == ["first"]


def test_another_package_adds_its_own(package: Path) -> None:
    install(package, member("Second", "second"), "elsewhere:Second")
    assert list(registry()) == ["first", "second"]
    assert registry()["second"].__module__ == "elsewhere"


@pytest.mark.parametrize(
    ("code", "value", "sentence"),
    [
        (
            "1 / 0",
            "elsewhere:Second",
            "The thing 'second' of the package elsewhere cannot be loaded: ZeroDivisionError",
        ),
        ("Second = 3", "elsewhere:Second", "is not a kinds_of_thing.base.Thing with a name"),
        (member("Second", "first"), "elsewhere:Second", "Two packages register a thing called 'first'"),
    ],
)
def test_a_broken_one_is_named(package: Path, code: str, value: str, sentence: str) -> None:
    install(package, code, value)
    with pytest.raises(InputError, match=sentence):
        list(registry())


def test_an_unknown_name_lists_the_choices(package: Path) -> None:
    with pytest.raises(InputError, match="There is no thing 'third'; choose from first"):
        registry()["third"]
