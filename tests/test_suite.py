"""The tests themselves: how often they replace code under test, and how often they use what is private."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect

TESTS = Path(__file__).parent
PACKAGE = Path(recollect.__file__).parent
TESTED_ELSEWHERE = {  # modules whose behaviour shows only in that of others
    "accelerate/tf32x3/kernels.py": "accelerate/tf32x3/test_tensor_cores.py",
    "cli/cluster_options.py": "cli/test_audit.py",
    "diffusion/prior_files.py": "diffusion/test_opening.py",
    "distributed/worker.py": "distributed/test_worker_pool.py",
    "models/safety/exported_checks.py": "models/safety/test_hostile_files.py",
    "models/safety/torchscript_archive.py": "models/safety/test_torchscript_attacks.py",
    "models/safety/torchscript_grammar.py": "models/safety/test_torchscript_attacks.py",
    "models/safety/torchscript_values.py": "models/safety/test_torchscript_attacks.py",
    "paper/experiments/deep.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/defences.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/larger_samples.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/more_unseen.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/plain_recipe.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/scaling.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/skip_connections.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/experiments/untuned_masks.py": "paper/experiments/test_beyond_the_paper.py",
    "paper/new_masks.py": "paper/experiments/test_beyond_the_paper.py",
    "version.py": "docs/test_pages.py",
}
MOST_PATCHES = 20
MOST_PRIVATE = 20


def patches(tree: ast.AST) -> Iterator[str]:
    """Calls that replace an attribute, and imports of mocks; environment, folders and dictionaries are no code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            yield ast.unparse(node)
        if isinstance(node, ast.Import | ast.ImportFrom) and "mock" in ast.unparse(node):
            yield ast.unparse(node)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(tree: ast.AST) -> Iterator[str]:
    """Private attributes of anything but the test's own objects, and private names that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and ast.unparse(node.value) not in OWN:
            yield ast.unparse(node)
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))


OWN = ("self", "cls", "super()", "os")  # os._exit is public


def over_all_tests(find: object) -> list[str]:
    assert callable(find)
    files = sorted(TESTS.rglob("*.py"))
    return [f"{path.relative_to(TESTS)}: {use}" for path in files for use in find(ast.parse(path.read_text()))]


@pytest.mark.parametrize("module", sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py")))
def test_every_module_has_a_test_at_its_mirror(module: str) -> None:
    path = Path(module)
    if path.stem in ("__init__", "__main__"):
        return
    mirror = TESTED_ELSEWHERE.get(module, (path.parent / f"test_{path.name}").as_posix())
    assert (TESTS / mirror).exists(), f"put the tests of {module} into tests/{mirror}"


def test_exceptions_are_modules() -> None:
    assert all((PACKAGE / module).exists() for module in TESTED_ELSEWHERE)


def test_few_tests_replace_code() -> None:
    uses = over_all_tests(patches)
    assert len(uses) <= MOST_PATCHES, "\n".join(uses)


def test_few_tests_use_what_is_private() -> None:
    uses = over_all_tests(private_uses)
    assert len(uses) <= MOST_PRIVATE, "\n".join(uses)


@pytest.mark.parametrize(
    ("find", "code", "count"),
    [
        (patches, "monkeypatch.setattr(a, 'b', 1)\npatch.setattr('a.b', 1)\nfrom unittest.mock import patch", 3),
        (patches, "monkeypatch.setenv('A', '1')\nmonkeypatch.chdir(b)\nmonkeypatch.setitem(c, 'd', 1)", 0),
        (private_uses, "from a import _b\na._c\nd()._e", 3),
        (private_uses, "self._a\na.__class__\nsuper()._b", 0),
    ],
)
def test_uses_are_counted(find: object, code: str, count: int) -> None:
    assert callable(find)
    assert len(list(find(ast.parse(code)))) == count
