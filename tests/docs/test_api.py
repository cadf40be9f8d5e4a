"""Public names say what they take and return, and their examples run."""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.auditing import Audit
from recollect.callbacks import MemorizationMonitor
from recollect.methods import Method

ROOT = Path(__file__).parents[2]
LISTED = re.findall(r"^::: ([\w.]+)", (ROOT / "docs" / "reference" / "api.md").read_text(), re.M)
PAGES = ("README.md", "docs/guide/*.md", "docs/concepts/*.md", "docs/contributing/*.md", "docs/notebooks/*.py")
WITHOUT_SECTIONS = {"Active", "Runtime", "without_acceleration"}  # the engine is for authors of methods
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def found(path: str) -> list[tuple[str, Any]]:
    """The object that a line of the reference names; of a module, its members that are listed."""
    module, _, name = path.rpartition(".")
    if path == "recollect.attractors":
        attractors = importlib.import_module(path)
        (names,) = re.findall(r"::: recollect\.attractors\n    options:\n      members: \[(.*)\]", API)
        return [(one, getattr(attractors, one)) for one in names.split(", ")]
    return [(name, getattr(importlib.import_module(module), name))]


API = (ROOT / "docs" / "reference" / "api.md").read_text()
NAMED = dict(pair for path in LISTED for pair in found(path))
DOCUMENTED = {name: value for name, value in NAMED.items() if name not in WITHOUT_SECTIONS}


def sections(value: Any) -> set[str]:
    return set(re.findall(r"^(Args|Attributes|Returns|Examples):$", inspect.getdoc(value) or "", re.M))


def parameters(value: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name != "self"]


def test_every_public_name_is_listed() -> None:
    assert set(recollect.__all__) - {"__version__"} <= set(NAMED)
    assert set(NAMED) >= WITHOUT_SECTIONS


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_says_what_it_takes_and_returns(name: str) -> None:
    value = DOCUMENTED[name]
    own = sections(value)
    assert "Examples" in own
    if not inspect.isclass(value):
        assert {"Args", "Returns"} <= own
    if "Args" in own:
        described = re.findall(r"^    (\w+): ", inspect.getdoc(value).split("Args:")[1].split("\n\n")[0], re.M)  # type: ignore[union-attr]
        assert described == parameters(value)


@pytest.mark.parametrize("function", [Method.__call__, MemorizationMonitor.__call__, Audit.rate, Audit.excess])
def test_a_member_that_is_listed_by_hand_describes_its_parameters(function: Callable[..., Any]) -> None:
    assert {"Args", "Returns"} <= sections(function)
    described = re.findall(r"^    (\w+): ", (inspect.getdoc(function) or "").split("Args:")[1].split("\n\n")[0], re.M)
    assert described == parameters(function)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_a_public_name_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "MemorizationCallback":
        pytest.importorskip("lightning")
    if name in ("bundled", "open_denoiser"):
        pytest.importorskip("diffusers")
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples
    told: list[str] = []
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append).failed
    assert not failed, "".join(told)


def test_names_that_pages_import_are_listed() -> None:
    public = set(NAMED) | {"METHODS", "__version__"}
    imported = set()
    for path in (path for pattern in PAGES for path in ROOT.glob(pattern)):
        imported |= imports(path)
    helpers = {"mean_square", "initialise"}  # of the package's own code, which a new method or network may use
    assert imported - public - helpers == set()


def imports(path: Path) -> set[str]:
    """Names that the Python code of a page imports from recollect."""
    text = path.read_text()
    blocks = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes if (node.module or "").startswith("recollect") for alias in node.names}
