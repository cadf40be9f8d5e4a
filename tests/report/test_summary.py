"""The first screen says what audit.json says, in a few words."""

from typing import Any

import pytest

from recollect.auditing.thresholds import EXACT
from recollect.auditing.verdict import Gate, Judged, decide
from recollect.report import summary
from recollect.report.audit_facts import checks_by_level
from recollect.report.read import SavedAudit
from recollect.report.results import build_results
from recollect.scoring import APPROXIMATE, Rate
from tests.report.making import AuditFiles, record


def audit(**facts: Any) -> SavedAudit:
    return AuditFiles([record([1e-9])], facts=facts).in_memory


NO_FIT = "The model copies its input, and these attacks cannot show what such a model memorized."


@pytest.mark.parametrize(
    ("judged", "limit", "doubts", "text"),
    [
        (Judged(Rate(40, 40), Rate(0, 40)), 0.01, [], "Failed: 100% recovered, at most 1% allowed"),
        (Judged(Rate(14, 1000), None), 0.01, [], "Failed: 1.4% recovered, at most 1% allowed"),
        (
            Judged(Rate(30, 40), Rate(10, 40)),
            0.01,
            [],
            "Failed: excess over unseen images 50%, at most 1% allowed",
        ),
        (Judged(Rate(0, 1000), Rate(0, 40)), 0.01, [], "Passed: at most 0.3% recovered, 1% allowed"),
        (Judged(Rate(0, 40), None), 0.01, [], "Inconclusive: too few images, at least 299 needed"),
        (Judged(Rate(0, 40), None), 0.0, [], "Inconclusive: not shown to be within 0%"),
        (Judged(Rate(0, 40), None), 0.01, [NO_FIT], "Inconclusive: the model copies its input"),
    ],
)
def test_the_badge_names_the_outcome_with_its_number_or_reason(
    judged: Judged, limit: float, doubts: list[str], text: str
) -> None:
    verdict = decide(Gate(limit), judged, doubts)
    assert summary.badge(audit(verdict=verdict.facts())) == summary.Badge(verdict.outcome, text)


def test_without_a_limit_the_badge_says_so() -> None:
    assert summary.badge(audit(verdict=None)).text == "No limit set"
    assert summary.reason(audit(verdict=None)) == ""


def test_the_verdict_is_written_out_where_it_adds_something() -> None:
    finding = {"train": {"value": 1.0}, "threshold": {"mse": APPROXIMATE}}

    def written(gate: Gate, judged: Judged) -> str:
        return summary.reason(audit(finding=finding, verdict=decide(gate, judged).facts()))

    everything, no_unseen = Judged(Rate(40, 40), None), Judged(Rate(0, 40), None)
    assert written(Gate(0.01), everything) == ""
    assert written(Gate(0.01, EXACT), everything).startswith("Model failed: 40 of 40")
    assert written(Gate(0.01), Judged(Rate(30, 40), None, only_returned=3)).startswith("Model failed: 30 of 40")
    assert written(Gate(0.01), no_unseen).startswith("Inconclusive: 0 of 40")
    assert written(Gate(0.1), no_unseen).startswith("Model passed: 0 of 40")


@pytest.mark.parametrize(
    ("headline", "lead"),
    [
        (
            "Attacks recover 40 of 40 training images from this model (95% interval 91-100%). Of 40 unseen images: 0.",
            "Attacks recover 40 of 40 training images from this model.",
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


def test_attack_and_threshold_are_explained(planted: AuditFiles) -> None:
    text = " ".join(summary.attack_sentences(planted.in_memory, build_results(planted.in_memory)))
    assert text.startswith(
        "Pixels were erased under 2 masks (block, dust); 2 attacks tried to restore them without being told which. An "
        "image counts if any attempt succeeds. Recovered: on average less than 5.7 of 255 grey levels off (MSE below "
        "5.0\N{NARROW NO-BREAK SPACE}×\N{NARROW NO-BREAK SPACE}10⁻⁴)."
    )
    assert summary.attack_sentences(audit(), build_results(audit())) == []


@pytest.mark.parametrize(
    ("iterate", "said"),
    [
        ([1e-9, 1.0], ["Each of blind and iterate recovers 1."]),
        ([1.0, 1.0], ["Alone, blind recovers most: 1."]),
    ],
)
def test_all_attacks_that_recover_most_are_named(iterate: list[float], said: list[str]) -> None:
    most = {"count": 1, "total": 2}
    finding = {"threshold": {"mse": APPROXIMATE}, "methods": ["blind", "iterate"], "best": {"train": most}}
    records = [record([1e-9, 1.0]), record(iterate, method="iterate")]
    files = AuditFiles(records, facts={"finding": finding, "settings": {"masks": {"block": "blurred"}}})
    first, _, *best = summary.attack_sentences(files.in_memory, build_results(files.in_memory))
    assert best == said
    assert first.startswith(
        "Images were damaged under 1 mask (block); 2 attacks tried to restore them without being told how."
    )


def test_a_reference_is_not_called_an_attack(planted: AuditFiles) -> None:
    finding = {**planted.facts["finding"], "methods": ["known"]}
    files = AuditFiles(planted.records, facts={**planted.facts, "finding": finding})
    text = " ".join(summary.attack_sentences(files.in_memory, build_results(files.in_memory)))
    assert "No attack was run, but a reference (known), which was told which." in text
    assert "Alone" not in text


def test_cards_count_checks_and_lead_to_their_sections(planted: AuditFiles) -> None:
    checks = checks_by_level(planted.in_memory)
    passed, worries, membership, limits = summary.cards(planted.in_memory, checks)
    assert passed.title == f"The audit itself: {len(checks['ok'])} checks passed"
    assert worries.title.startswith(f"{len(checks['warning'])} warning")
    assert worries.level == "warning"
    assert membership.text.startswith("Training images can be told from unseen ones (AUC 1.00, 95% interval 0.")
    assert membership.text.endswith("–1.00; 0.5 is guessing).")
    assert [card.section for card in (passed, worries, membership, limits)] == ["checks", "checks", "curves", "scope"]


def test_worries_are_named_in_plain_words() -> None:
    found = [{"name": name, "level": "note", "sentence": "Look."} for name in ("black", "duplicates")]
    _, worries, *_ = summary.cards(audit(), checks_by_level(audit(checks=found)))
    assert (worries.title, worries.text) == ("2 notes on these numbers", "black pixels · duplicates")


def test_cards_of_an_audit_without_checks_and_unseen_images() -> None:
    passed, worries, membership, _ = summary.cards(audit(), checks_by_level(audit()))
    assert (passed.title, worries.title) == ("No check passed", "No warnings")
    assert "no unseen images" in membership.text


def test_an_interval_around_guessing_tells_no_membership() -> None:
    row = {"mask": "any mask", "method": "blind", "auc": 0.55, "auc_low": 0.4, "auc_high": 0.7}
    found = audit(main_method="blind", membership=[row])
    membership = summary.cards(found, checks_by_level(found))[2]
    assert membership.text.startswith(
        "Training images cannot be told from unseen ones (AUC 0.55, 95% interval 0.40–0.70;"
    )


@pytest.mark.parametrize(
    ("count", "outcome", "words"),
    [
        (0, None, "A low rate does not mean safe"),
        (1, "passed", "A low rate does not mean safe"),
        (1, "failed", "At least this share"),
        (2, "failed", "holds for images sampled like these"),
    ],
)
def test_what_the_audit_does_not_show_follows_the_outcome(count: int, outcome: str | None, words: str) -> None:
    verdict = {"outcome": outcome} if outcome else None
    found = audit(finding={"train": {"count": count, "total": 2}}, verdict=verdict)
    assert words in summary.cards(found, checks_by_level(found))[3].text


def test_date_version_and_sizes_are_shown(planted: AuditFiles) -> None:
    facts = {**planted.facts, "provenance": {"started": "2026-11-08T02:00:00+00:00", "versions": {"recollect": "9.9"}}}
    found = AuditFiles(planted.records, facts=facts).in_memory
    assert summary.run_facts(found) == ["8 Nov 2026", "recollect 9.9", "tested on 24 training and 24 unseen images"]
    assert summary.run_facts(audit(provenance={"started": "soon"})) == []
