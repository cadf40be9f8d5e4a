"""What is read from source is what the registries hold: so help and early checks say what the import would."""

import ast
from pathlib import Path

import pytest

from recollect.cli import listings
from recollect.declared import class_variables, declared
from recollect.degradation import DEGRADATIONS
from recollect.diffusion.networks import DENOISING_NETWORKS
from recollect.methods import METHODS
from recollect.models.formats import FORMATS
from recollect.networks import NETWORKS
from recollect.paper.experiments import EXPERIMENTS
from recollect.sources import SOURCES

OF_FORMATS = {"summary": "", "example": "", "suffixes": (), "listed": True}


@pytest.mark.parametrize(
    ("package", "kinds", "registry", "attributes"),
    [
        ("recollect.methods", (), METHODS, {"summary": "", "by_default": False}),
        ("recollect.degradation", (), DEGRADATIONS, {"summary": "", "example": ""}),
        ("recollect.networks", (), NETWORKS, {"summary": ""}),
        ("recollect.diffusion.networks", (), DENOISING_NETWORKS, {"summary": ""}),
        ("recollect.models.formats", ("ModelFormat",), FORMATS, OF_FORMATS),
        ("recollect.sources", ("Source",), SOURCES, {"summary": ""}),
        ("recollect.paper.experiments", ("Experiment",), EXPERIMENTS, {}),
    ],
)  # fmt: skip
def test_source_says_what_the_registry_says(
    package: str, kinds: tuple[str, ...], registry: dict, attributes: dict
) -> None:
    members = declared(package, *kinds)
    assert members is not None
    assert list(members) == list(registry)
    for name, facts in members.items():
        for attribute, default in attributes.items():
            assert facts.get(attribute, default) == getattr(registry[name], attribute), (name, attribute)


@pytest.mark.parametrize("lines", ["name: str = 'a'\n    order: int = 3", "name = 'a'\n    order = 3"])
def test_class_variables_are_read_however_they_are_written(lines: str) -> None:
    (definition,) = ast.parse(f"class A:\n    {lines}\n    limit = float('inf')").body
    assert isinstance(definition, ast.ClassDef)
    assert class_variables(definition) == {"name": "a", "order": 3}


@pytest.mark.parametrize("line", ["summary = 'b'.upper()", "name = 'b'.upper()"])
def test_a_member_that_computes_what_is_shown_is_imported(line: str, tmp_path: Path) -> None:
    package = f"somewhere.{tmp_path}"
    (tmp_path / "one.py").write_text("class A:\n    name = 'a'\n    summary = 'b'\n")
    assert declared(package) == {"a": {"name": "a", "summary": "b"}}
    (tmp_path / "other.py").write_text(f"class B:\n    name = 'c'\n    {line}\n")
    assert declared(package) is None


def test_members_of_other_packages_are_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = listings.methods(), listings.model_formats(), listings.networks(), listings.degradations()
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[recollect.methods]\nblind = recollect.methods:Blind\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert declared("recollect.methods") is None
    assert (listings.methods(), listings.model_formats(), listings.networks(), listings.degradations()) == before
