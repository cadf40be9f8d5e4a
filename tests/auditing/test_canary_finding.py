"""Audits of canaries, whose coins are known."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from torch import Tensor

from recollect import InputError, audit
from recollect.auditing import Audit
from recollect.auditing.verify import verify_audit
from recollect.canaries import write_canaries
from recollect.records import AUDIT_FORMAT, read_sealed, write_sealed
from tests.auditing.making import images
from tests.canaries.making import small_canaries
from tests.planted import Memorizer

QUICK: dict[str, Any] = {"masks": "half", "methods": "iterate"}
MODEL = Memorizer(small_canaries().training_images.pixels.unique(dim=0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("audited")
    canaries = write_canaries(small_canaries(), out / "canaries")
    return audit(MODEL, canaries=canaries, out=out / "audit", **QUICK).store.folder or out


def test_memorized_canaries_refute_an_epsilon(folder: Path) -> None:
    found = Audit.load(folder).canaries
    assert found is not None
    assert [group.repeats for group in found.groups] == [1, 2]
    assert sum(group.inside.total for group in found.groups) == len(small_canaries().train)
    for group in found.groups:
        assert group.inside.count > 0.7 * group.inside.total
        assert group.outside.count == 0
        assert 0 < group.epsilon <= group.epsilon_of_repeats
    assert found.epsilon == max(group.epsilon for group in found.groups)
    assert f"Epsilon is at least {found.epsilon:.2f} for one training image (delta 1e-05, 95%" in str(found)
    assert str(found) in " ".join(str(Audit.load(folder)).split())


def test_it_is_recorded_with_exact_intervals(folder: Path) -> None:
    recorded = json.loads((folder / "audit.json").read_text())
    jsonschema.validate(recorded, json.loads(files("recollect.auditing").joinpath("audit.schema.json").read_text()))
    block = recorded["canaries"]
    assert block["commitment"] == small_canaries().commitment
    rate = block["groups"][0]["out"]
    assert rate["count"] == 0
    assert rate["high"] == pytest.approx(1 - 0.025 ** (1 / rate["total"]))  # Clopper and Pearson


def test_verification_computes_it_again(folder: Path) -> None:
    assert verify_audit(folder).passed
    path = folder / "audit.json"
    content, before = read_sealed(path, AUDIT_FORMAT, "an audit"), path.read_bytes()
    try:
        content["canaries"]["epsilon"] = 9.0
        write_sealed(path, AUDIT_FORMAT, content)
        assert "The canaries in audit.json is not the one" in str(verify_audit(folder))
    finally:
        path.write_bytes(before)


def test_a_model_that_saw_none_refutes_nothing() -> None:
    found = audit(Memorizer(images(9, 5).pixels), canaries=small_canaries(), **QUICK).canaries
    assert found is not None
    assert found.epsilon == 0
    assert "does not show that training was private" in str(found)


def test_settings_are_searched_on_known_canaries() -> None:
    result = audit(MODEL, canaries=small_canaries(), masks="half", methods="blind", start="half_kept", gamma="auto")
    assert result.facts["settings"]["tuning_images_left_out"] == list(small_canaries().known.ids)
    assert {*result.records[0].ids} == {*small_canaries().train.ids}  # none of them is left out


def of_the_batch(x: Tensor) -> Tensor:
    return x * 0.5 + x.mean(0, keepdim=True) * 0.5


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"train": images(9, 5)}, "leave train and control out"),
        ({"canaries": None}, "An audit needs training images"),
        ({"fill": "zero,images"}, "would tell their coins"),
        ({"canaries": "nowhere"}, "nowhere holds no canaries"),
        ({"model": of_the_batch}, "batch=1"),
        ({"model": Memorizer(images(9, 5, size=4).pixels)}, "3x8x8"),
    ],
)
def test_mistakes(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        audit(**{"model": MODEL, "canaries": small_canaries(), **QUICK, **settings})
