"""audit.json follows the schema that ships with the package."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from recollect.records import AUDIT_FORMAT
from tests.auditing.making import images, small_audit

SCHEMA = json.loads(files("recollect.auditing").joinpath("audit.schema.json").read_text())


def audited(folder: Path, **more: Any) -> dict[str, Any]:
    small_audit(out=folder, masks="half", **more)
    return json.loads((folder / "audit.json").read_text())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    control = images(6, 2)
    return audited(tmp_path_factory.mktemp("full"), control=control, fail_above=0.01, attractors=1, methods="iterate")


def test_the_schema_is_one_and_of_this_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == SCHEMA["properties"]["format"]["const"] == AUDIT_FORMAT
    assert set(SCHEMA["required"]) == set(SCHEMA["properties"])


def test_audits_follow_it(full: dict[str, Any], tmp_path: Path) -> None:
    jsonschema.validate(full, SCHEMA)
    jsonschema.validate(audited(tmp_path, train=9, control=None, methods="known,blind", gamma="auto"), SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.pop("verdict"),
        lambda f: f.update(more=1),
        lambda f: f["verdict"].update(outcome="fine"),
        lambda f: f["finding"]["train"].update(count=-1),
        lambda f: f["summary"][0].pop("accurate"),
        lambda f: f.update(format="recollect-audit-1"),
    ],
)
def test_what_is_no_audit_does_not(full: dict[str, Any], change: Any) -> None:
    changed = json.loads(json.dumps(full))
    change(changed)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, SCHEMA)
