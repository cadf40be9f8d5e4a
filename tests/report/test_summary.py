"""The first screen says what audit.json says, in a few words."""

from typing import Any

import pytest

from recollect.report import summary
from recollect.report.audit_facts import checks_by_level
from recollect.report.read import SavedAudit
from recollect.report.results import build_results
from tests.report.making import AuditFiles, record


def audit(**facts: Any) -> SavedAudit:
    return AuditFiles([record([1e-9])], facts=facts).in_memory


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("passed", "Passed: within the limit of 1%"),
        ("failed", "Failed: above the limit of 1%"),
        ("inconclusive", "Inconclusive: not shown to be within 1%"),
    ],
)
def test_the_badge_names_outcome_and_limit(outcome: str, text: str) -> None:
    found = summary.badge(audit(verdict={"outcome": outcome, "limit": 0.01}))
    assert (found.outcome, found.text) == (outcome, text)


def test_without_a_limit_the_badge_says_so() -> None:
    assert summary.badge(audit(verdict=None)).text == "No limit set"


@pytest.mark.parametrize(
    ("headline", "lead"),
    [
        (
            "This model reproduces 40 of 40 training images (95% interval 91-100%). Of 40 images it never saw: 0.",
            "This model reproduces 40 of 40 training images.",
        ),
        ("A finding.", "A finding."),
    ],
)
def test_the_headline_is_one_sentence_whose_interval_stands_elsewhere(headline: str, lead: str) -> None:
    assert summary.lead_sentence(headline) == lead


def test_the_numbers_are_those_of_the_finding(planted: AuditFiles) -> None:
    finding = planted.facts["finding"]
    train, control = summary.big_numbers(planted.in_memory)
    assert train.count == f"{finding['train']['count']} of 24"
    assert train.percent == f"{100 * finding['train']['value']:.0f}%"
    assert (control.percent, control.interval) == ("0%", "95% interval 0–14%")
    assert summary.big_numbers(audit()) == []


def test_training_images_that_were_handed_out_are_named() -> None:
    def said(different: int) -> str:
        returned = {"control": {"images": 40, "ended": 4, "different": different}}
        return summary.handed_out(audit(finding={"returned": returned}))

    assert said(0) == ""
    assert "returned 1 training image." in said(1)
    assert "From 40 damaged images it never saw, the model returned 14 different training images." in said(14)


def test_attack_and_threshold_are_explained(planted: AuditFiles) -> None:
    text = " ".join(summary.attack_sentences(planted.in_memory, build_results(planted.in_memory)))
    best = planted.facts["finding"]["best"]
    assert f"Best alone: {best['method']}, {best['train']['count']} of 24." in text
    assert "under 2 masks, not told which pixels were erased" in text
    assert "below 5.7 of 255 grey levels (MSE below 5e-04)" in text
    assert summary.attack_sentences(audit(), build_results(audit())) == []


def test_a_reference_is_not_called_an_attack(planted: AuditFiles) -> None:
    finding = {**planted.facts["finding"], "methods": ["known"]}
    files = AuditFiles(planted.records, facts={**planted.facts, "finding": finding})
    text = " ".join(summary.attack_sentences(files.in_memory, build_results(files.in_memory)))
    assert "No attack, but a reference (known)" in text
    assert "Best alone" not in text


def test_cards_count_checks_and_lead_to_their_sections(planted: AuditFiles) -> None:
    checks = checks_by_level(planted.in_memory)
    passed, worries, membership, limits = summary.cards(planted.in_memory, checks)
    assert passed.title == f"✓ {len(checks['ok'])} checks passed"
    assert worries.title.startswith(f"{len(checks['warning'])} warning")
    assert worries.level == "warning"
    assert membership.text.startswith("AUC ")
    assert membership.text.endswith("training images stand out.")
    assert [card.section for card in (passed, worries, membership, limits)] == ["checks", "checks", "curves", "scope"]


def test_worries_are_named_in_plain_words() -> None:
    found = [{"name": name, "level": "note", "sentence": "Look."} for name in ("black", "duplicates")]
    _, worries, *_ = summary.cards(audit(), checks_by_level(audit(checks=found)))
    assert (worries.title, worries.text) == ("2 notes", "black pixels · duplicates")


def test_cards_of_an_audit_without_checks_and_unseen_images() -> None:
    passed, worries, membership, _ = summary.cards(audit(), checks_by_level(audit()))
    assert (passed.title, worries.title) == ("No check passed", "No warnings")
    assert "no unseen images" in membership.text


def test_date_version_and_sizes_are_shown(planted: AuditFiles) -> None:
    facts = {**planted.facts, "provenance": {"started": "2026-11-08T02:00:00+00:00", "versions": {"recollect": "9.9"}}}
    found = AuditFiles(planted.records, facts=facts).in_memory
    assert summary.run_facts(found) == ["8 Nov 2026", "recollect 9.9", "24 training / 24 unseen images"]
    assert summary.run_facts(audit(provenance={"started": "soon"})) == []
