from dataclasses import dataclass
from typing import Any, ClassVar

from recollect import Blind, Iterate, KnownMask
from recollect.auditing.method_facts import method_facts
from recollect.methods import Method
from tests.auditing.making import small_audit


@dataclass(frozen=True)
class Mine(Method):
    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "a method of another package"
    colour: ClassVar[str | None] = "violet"
    order: ClassVar[int] = 0


class Undescribed:
    """A method that says only what an audit must know."""

    knows_truth = True

    def __call__(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError


def test_a_method_is_described_in_its_own_words() -> None:
    assert method_facts({"blind": Blind()})["blind"] == {
        "summary": Blind.summary,
        "label": Blind.label,
        "colour": "blue",
        "knows_truth": False,
        "sees_model": True,
        "in_rounds": True,
    }
    facts = method_facts({"mine": Mine()})["mine"]
    assert (facts["summary"], facts["colour"]) == ("a method of another package", "violet")
    assert facts["label"] == "mine"  # it has no label of its own


def test_they_are_in_the_order_of_help_and_legends() -> None:
    assert list(method_facts({"known": KnownMask(), "iterate": Iterate(), "mine": Mine()})) == [
        "mine",
        "iterate",
        "known",
    ]


def test_two_of_a_kind_are_labelled_by_the_names_that_the_user_gave() -> None:
    facts = method_facts({"short": Blind(limit=5), "long": Blind(limit=50)})
    assert [facts[name]["label"] for name in ("short", "long")] == ["short", "long"]


def test_a_method_that_says_nothing_of_itself_has_facts_too() -> None:
    facts = method_facts({"other": Undescribed()})["other"]
    assert (facts["knows_truth"], facts["sees_model"]) == (True, True)
    assert (facts["summary"], facts["label"], facts["colour"]) == ("", "other", None)


def test_an_audit_records_them() -> None:
    audit = small_audit(methods=[Iterate(), KnownMask()])
    assert audit.to_dict()["methods"] == method_facts({"iterate": Iterate(), "known": KnownMask()})
