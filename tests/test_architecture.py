"""Who may import whom: the table of the design, read from the source with `ast`."""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import recollect

PACKAGE = Path(recollect.__file__).parent

# What describes pixels, a network, H, an error, a row: torch, numpy and the standard library alone.
LEAVES = {"counting", "declared", "degradation", "devices", "errors", "files", "hub", "image_values", "images"}
LEAVES |= {"interruption", "lazy_names", "mask_names", "networks", "palette", "per_image", "pieces"}
LEAVES |= {"record_lines", "record_schema", "records", "recovery", "registry", "scoring", "seeding", "user_code"}
LEAVES |= {"version", "visible"}
CHANGES_WEIGHTS = LEAVES | {"checkpoints", "model_folders"}
JOINS = CHANGES_WEIGHTS | {
    "attractors",
    "diffusion",
    "duplicates",
    "engine",
    "methods",
    "models",
    "nearest",
    "sources",
    "training",
}

MAY_IMPORT: dict[str, set[str]] = {
    "counting": set(),
    "errors": {"visible"},
    "version": set(),
    "image_values": set(),
    "devices": {"counting", "errors"},
    "per_image": {"devices"},
    "seeding": {"devices"},
    "pieces": {"files"},
    "lazy_names": set(),
    "files": {"errors"},
    "images": {"counting", "errors", "files", "lazy_names", "pieces"},
    "user_code": {"errors"},
    "nearest": {"images"},
    "duplicates": {"errors", "images", "sources"},
    "palette": set(),
    "visible": set(),
    "registry": {"errors"},
    "declared": set(),
    "networks": {"errors", "registry"},
    "scoring": {"errors"},
    "interruption": set(),
    "mask_names": {"errors"},
    "record_schema": {"errors"},
    "records": {"errors", "files", "record_schema", "scoring", "version"},
    "record_lines": {"errors", "records"},
    "degradation": {"devices", "errors", "image_values", "images", "mask_names", "per_image", "registry"} | {"seeding"},
    "recovery": {"counting", "degradation", "per_image"},
    # A method never sees images, scores or anything else that knows the truth.
    "methods": {"degradation", "devices", "engine", "errors", "image_values", "per_image", "pieces", "recovery"}
    | {"registry", "seeding"},
    "engine": {"accelerate", "degradation", "devices", "errors", "per_image", "recovery"},
    "accelerate": {"devices"},
    "attractors": {"devices", "errors"},
    "models": {"checkpoints", "counting", "devices", "diffusion", "errors", "files", "hub", "images"}
    | {"lazy_names", "model_folders", "registry", "user_code"},
    "sources": {"counting", "errors", "files", "images", "lazy_names", "records", "registry", "user_code"},
    "hub": {"errors"},
    "model_folders": {"devices", "errors", "files", "records"},
    "checkpoints": {"devices", "errors", "files", "networks", "records"},
    "training": CHANGES_WEIGHTS,
    "diffusion": {"checkpoints", "counting", "devices", "errors", "files", "hub", "images", "interruption"}
    | {"model_folders", "records", "registry", "scoring", "seeding"},
    "extraction": {"counting", "devices", "diffusion", "errors", "images", "methods", "models", "nearest", "scoring"},
    "canaries": {"duplicates", "errors", "files", "images", "lazy_names", "records", "sources"},
    "report": {"counting", "errors", "lazy_names", "palette", "records", "scoring", "visible"},
    "auditing": JOINS | {"canaries", "distributed", "extraction", "report"},
    "callbacks": {"auditing", "counting", "degradation", "devices", "distributed", "errors", "images"}
    | {"lazy_names", "methods", "models", "recovery", "scoring"},
    "demo": {"auditing", "diffusion", "networks", "sources", "training"},
    "distributed": {"errors", "lazy_names", "records", "version"},
    "paper": JOINS | {"auditing", "distributed"},
    # Tables and figures of records: masks and methods give their labels, nothing is measured.
    "paper/render": {"degradation", "errors", "methods", "palette", "paper/__init__", "paper/cells"}
    | {"paper/experiment", "paper/experiments", "paper/scales", "paper/store", "paper/workspace", "records"}
    | {"scoring"},
    "cli": JOINS | {"auditing", "canaries", "demo", "distributed", "extraction", "paper", "report"},
}
LEAN = LEAVES | {"accelerate", "attractors", "engine", "methods"}  # only torch and numpy at the top of a file
WHOLE_WHEN_USED = {"accelerate/tf32x3/kernels.py": {"triton"}}  # files that are imported themselves only when used
ANYTHING = {"__init__", "__main__"}  # the package's own front doors


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The row of a file in the table: the first name below the package, or the first two where these have a row."""
    names = path.relative_to(PACKAGE).with_suffix("").parts
    inner = "/".join(names[:2])
    return inner if inner in MAY_IMPORT else names[0]


def part_imported(module: str, allowed: set[str]) -> str:
    """The part that a module belongs to: its first two names where the table allows these, else the first."""
    names = [*module.split(".")[1:], "__init__"]
    inner = "/".join(names[:2])
    return inner if inner in allowed else names[0]


def imported(tree: ast.AST, path: Path) -> Iterator[str]:
    """Full names of the modules that a piece of code imports, relative imports resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = ["recollect", *path.relative_to(PACKAGE).parent.parts]
            base = ".".join(inside[: len(inside) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                full = f"{module}.{alias.name}"
                yield full if module == "recollect" or is_module(full) else module


def is_module(name: str) -> bool:
    """Whether the package has a file or a folder of this name."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_relative_to(PACKAGE) and (path.is_dir() or path.with_suffix(".py").exists())


class WithoutTypes(ast.NodeTransformer):
    """Drops imports that only a type checker reads."""

    def visit_If(self, node: ast.If) -> ast.AST:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return ast.Pass()
        return self.generic_visit(node)


class AtTheTop(WithoutTypes):
    """Drops the insides of functions too, where imports wait until they are used."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [ast.Pass()]
        return node


def at_the_top(path: Path) -> ast.Module:
    return AtTheTop().visit(ast.parse(path.read_text()))


def module_name(path: Path) -> str:
    return ".".join(["recollect", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def test_every_module_has_its_place() -> None:
    strangers = {part_of(p) for p in files()} - set(MAY_IMPORT) - ANYTHING
    assert not strangers, f"say in MAY_IMPORT where these live: {sorted(strangers)}"


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_within_the_package(path: Path) -> None:
    part = part_of(path)
    if part in ANYTHING:
        return
    allowed, modules = MAY_IMPORT[part] | {part}, set(imported(ast.parse(path.read_text()), path))
    assert "recollect" not in modules, "import the module that is used: the whole package hides it"
    used = {part_imported(name, allowed) for name in modules if name.startswith("recollect.")}
    forbidden = used - allowed
    assert not forbidden, f"{part} may not import {sorted(forbidden)}"


def test_the_terminal_is_touched_in_few_places() -> None:
    """An audit prints itself and its progress in Python too, and code of others may write; all else is for `cli/`."""

    def touches(path: Path) -> bool:
        tree = ast.parse(path.read_text())
        names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)}
        rich = any(name.split(".")[0] == "rich" for name in imported(tree, path))
        return rich or bool(names & {"print", "sys.stdout", "sys.stderr", "sys.argv"})

    inside = [path for path in files() if part_of(path) not in {"cli", *ANYTHING}]
    touching = {path.relative_to(PACKAGE).as_posix() for path in inside if touches(path)}
    assert touching == {"auditing/printout.py", "auditing/progress.py", "user_code.py"}


def test_contributing_says_what_every_part_is_about() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    single = {path.stem for path in PACKAGE.glob("*.py")} - ANYTHING
    folders = {path.parent.name + "/" for path in PACKAGE.glob("*/__init__.py")}
    assert {name for name in single | folders if f"`{name}`" not in text} == set()


def test_the_engine_imports_acceleration_in_one_place() -> None:
    def accelerates(code: ast.AST, path: Path) -> bool:
        return any(name.startswith("recollect.accelerate") for name in imported(code, path))

    def importing_functions(path: Path) -> list[str]:
        functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
        return [f"{path.name}: {f.name}" for f in functions if accelerates(f, path)]

    engine = [path for path in files() if part_of(path) == "engine"]
    assert [name for path in engine for name in importing_functions(path)] == ["runtime.py: _find_accelerator"]
    assert not [path for path in engine if accelerates(at_the_top(path), path)]


@pytest.mark.parametrize("path", [p for p in files() if part_of(p) in LEAN], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_core_needs_torch_and_numpy_alone(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(at_the_top(path), path)}
    allowed = {"torch", "numpy", "recollect"} | WHOLE_WHEN_USED.get(str(path.relative_to(PACKAGE)), set())
    foreign = tops - set(sys.stdlib_module_names) - allowed
    assert not foreign, f"import {sorted(foreign)} where it is used"


@pytest.mark.parametrize("name", WHOLE_WHEN_USED)
def test_what_is_imported_when_used_is_at_the_top_of_no_file(name: str) -> None:
    module = "recollect." + name.removesuffix(".py").replace("/", ".")
    assert (PACKAGE / name).exists()
    assert not [p for p in files() if module in set(imported(at_the_top(p), p))]


def needed_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, wherever it does; not those that only its types name."""
    return set(imported(WithoutTypes().visit(ast.parse(path.read_text())), path)) & set(modules)


def test_no_modules_import_each_other() -> None:
    modules = {module_name(path): path for path in files()}
    needed = {name: needed_modules(path, modules) for name, path in modules.items()}
    assert needed["recollect.methods.blind"] >= {"recollect.methods.admm", "recollect.methods.base"}
    TopologicalSorter(needed).prepare()  # raises, with the modules, if there is a cycle


def test_one_part_alone_knows_of_ray() -> None:
    using = {
        part_of(p) for p in files() if any(n.split(".")[0] == "ray" for n in imported(ast.parse(p.read_text()), p))
    }
    assert using == {"distributed"}


def test_the_reader_of_imports_reads_them() -> None:
    code = (
        "import a.b\nfrom recollect import scoring\nfrom . import x, admm\nfrom ..images import Images\n"
        "from recollect.paper import measure\ndef f():\n  import c"
    )
    names = set(imported(ast.parse(code), PACKAGE / "methods" / "blind.py"))
    own = {"recollect.methods", "recollect.methods.admm"}
    assert names == {"a.b", "recollect.scoring", *own, "recollect.images", "recollect.paper.measure", "c"}


HEAVY = ["PIL", "scipy", "skimage", "pandas", "matplotlib", "typer", "rich", "jinja2", "safetensors", "pooch", "tqdm"]
HEAVY += ["onnx", "onnxruntime", "ray", "diffusers", "pyarrow", "requests", "pydantic", "lightning"]


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_imports_and_recovers_where_only_torch_and_numpy_are_installed() -> None:
    run(f"""
        import sys

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {HEAVY}:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Refuse())
        import torch
        import recollect
        from recollect import Blind, Images, KnownMask, Iterate, Score, mask, observe

        images = Images(torch.rand(3, 3, 8, 8))
        seen = observe(images, mask("block", images.shape), noise_std=0.01)
        f = recollect.FullyConnected(images.shape, layers=2, width=8)
        Blind(limit=2)(f, seen.y), Iterate(limit=2)(f, seen.y)
        str(Score.of(KnownMask()(f, seen.y, seen.truth).estimate, images.pixels).accurate)
    """)


def test_importing_it_imports_little_beside_torch() -> None:
    out = run("""
        import sys
        import torch, numpy
        before = set(sys.modules)
        import recollect
        print(*sorted(set(sys.modules) - before))
    """)
    modules = out.split()
    assert not [name for name in modules if name.split(".")[0] in HEAVY]
    assert [name for name in modules if name.split(".")[0] == "recollect"]
    assert len(modules) < 150, "import what is used seldom where it is used"


def test_the_public_names_are_there() -> None:
    assert all(hasattr(recollect, name) for name in recollect.__all__)
    assert dir(recollect) == recollect.__all__ == sorted(recollect.__all__)
    assert len(recollect.__all__) <= 25


def test_nothing_is_printed_by_the_core() -> None:
    for path in (p for p in files() if part_of(p) in LEAN):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path
