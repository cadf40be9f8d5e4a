import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.models import open_model, source_hash
from recollect.models.source_code import factory_files
from tests.models.making import export, script, tiny

INSIDE = {
    "own/__init__.py": "",
    "own/nets/__init__.py": "from .layers import scale",
    "own/nets/layers.py": "import math\nscale = 1",
    "own/nets/late.py": "",
    "own/unused.py": "",
    "beside_own.py": "",
    "own/make.py": "import torch, beside_own\nfrom own.nets import scale\n"
    "def factory():\n    from .nets import late\n    return torch.nn.Identity()",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in INSIDE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("own", "beside_own"):
            del sys.modules[name]


def test_the_code_of_a_factory_is_its_module_and_what_that_imports_beside_it(package: Path) -> None:
    open_model("own.make:factory", device="cpu")
    files = factory_files("own.make")
    assert set(files) == {"own", "own.make", "own.nets", "own.nets.layers", "own.nets.late", "beside_own"}
    before = source_hash("own.make:factory")
    (package / "own" / "unused.py").write_text("changed = 1")
    assert source_hash("own.make:factory") == before
    (package / "own" / "nets" / "layers.py").write_text("scale = 2")
    assert source_hash("own.make:factory") != before


def test_of_installed_code_the_package_alone_counts(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = package / "site-packages"
    installed.mkdir()
    for name in ("own", "beside_own.py"):
        (package / name).rename(installed / name)
    monkeypatch.syspath_prepend(str(installed))
    open_model("own.make:factory", device="cpu")
    assert "beside_own" not in factory_files("own.make")
    assert "own.nets.layers" in factory_files("own.make")


def test_a_file_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    first = script(tiny(), tmp_path / "a.pt")
    other = script(tiny(), tmp_path / "c.pt")
    (tmp_path / "b.pt").write_bytes(first.read_bytes())
    assert source_hash(first) == source_hash(str(tmp_path / "b.pt"))
    assert source_hash(export(tiny(), tmp_path / "a.pt2")) != source_hash(first)
    with other.open("ab") as file:
        file.write(b" ")
    assert source_hash(other) != source_hash(first)


def test_files_beside_a_model_count(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"graph")
    (tmp_path / "m.onnx.data").write_bytes(b"weights")
    before = source_hash(tmp_path / "m.onnx")
    (tmp_path / "m.onnx.data").write_bytes(b"others")
    assert source_hash(tmp_path / "m.onnx") != before


def test_an_object_has_no_source() -> None:
    assert source_hash(tiny()) is None
