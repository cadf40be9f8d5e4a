from typing import Any

import pytest

from recollect.auditing import Audit
from recollect.methods import Blind, Iterate, KnownMask, Refined
from tests.auditing.making import small_audit


@pytest.fixture(scope="module")
def planted() -> Audit:
    return small_audit()


def test_all_that_can_be_checked_is(planted: Audit) -> None:
    names = [
        "deterministic", "batch", "fit", "control", "overlap", "duplicates", "black", "zero-rule", "stops", "float32",
        "stability",
    ]  # fmt: skip
    assert [check.name for check in planted.checks] == names
    assert all(check.sentence.endswith(".") for check in planted.checks)


@pytest.mark.parametrize(
    ("methods", "main"),
    [
        ("known,iterate,blind", "blind"),  # which recovers as much as iterate here
        ("known,iterate", "iterate"),
        ("known,zero-rule", "zero-rule"),  # which guesses the mask and is told nothing
        ("known", "known"),
        ({"first": Iterate(limit=3), "mine": Refined(limit=3), "informed": KnownMask()}, "mine"),
    ],
    ids=["names", "without blind", "zero rule", "known alone", "objects"],
)
def test_the_strongest_attack_is_named(methods: Any, main: str) -> None:
    found = small_audit(train=3, control=None, masks="half", methods=methods)
    assert found.main_method == main
    assert ("knows which pixels were erased" in found.headline) == (main == "known")


def test_recoveries_by_methods_that_know_the_mask_do_not_explain_attractors() -> None:
    known = small_audit(train=3, control=None, masks="half", methods="known", attractors=2)
    assert [row["recovered"] for row in known.attractors or []] == [False, False]
    blind = small_audit(train=3, control=None, masks="half", methods=[Blind()], attractors=2)
    assert [row["recovered"] for row in blind.attractors or []] == [True, True]
