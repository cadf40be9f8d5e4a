from recollect.report.audit_facts import checks_by_level, methods_run, not_run, provenance, subjects
from recollect.report.results import build_results
from tests.report.making import AuditFiles


def test_warnings_come_first_and_no_check_is_lost(planted: AuditFiles) -> None:
    checks = checks_by_level(planted.in_memory)
    assert list(checks) == ["warning", "note", "ok"]
    assert sum(len(group) for group in checks.values()) == len(planted.facts["checks"])
    assert all(checks[level] for level in checks)


def test_a_summary_that_disagrees_is_a_warning(planted: AuditFiles) -> None:
    stranger = {**planted.facts["summary"][0], "mask": "nowhere"}
    audit = AuditFiles(planted.records, facts={"summary": [stranger]}).in_memory
    assert [check["name"] for check in checks_by_level(audit)["warning"]] == ["summary"]


def test_it_says_what_was_audited(planted: AuditFiles) -> None:
    blocks = {block.title: block for block in subjects(planted.in_memory, build_results(planted.in_memory))}
    assert blocks["Training images"].name == "patterns"
    assert ("images", "24") in blocks["Unseen images"].rows
    assert dict(blocks["Training images"].rows)["hash"] == planted.facts["train"]["hash"][:12]
    assert blocks["Attempts"].name == "2 masks × 3 methods"
    assert ("attacks", "blind, iterate") in blocks["Attempts"].rows
    assert ("references", "known") in blocks["Attempts"].rows


def test_missing_unseen_images_are_named(planted: AuditFiles) -> None:
    records = [record for record in planted.records if record.cell["set"] == "train"]
    audit = AuditFiles(records, facts={**planted.facts, "control": None}).in_memory
    blocks = {block.title: block for block in subjects(audit, build_results(audit))}
    assert blocks["Unseen images"].name == "none"


def test_provenance_has_every_setting_and_whole_hashes(planted: AuditFiles) -> None:
    blocks = {block.title: dict(block.rows) for block in provenance(planted.in_memory)}
    assert blocks["Settings"]["seed"] == "42"
    assert blocks["Training images"]["hash"] == planted.facts["train"]["hash"]
    assert blocks["Run on"]["device"]


def test_methods_are_listed_as_run_or_not(planted: AuditFiles) -> None:
    run = methods_run(build_results(planted.in_memory))
    assert [(name, kind) for name, kind, _ in run] == [
        ("blind", "attack"),
        ("iterate", "attack"),
        ("known", "reference"),
    ]
    left_out = not_run(planted.in_memory)
    assert {"refined", "ddnm"} <= {name for name, _, _ in left_out}
    assert {name for name, _, _ in run}.isdisjoint(name for name, _, _ in left_out)
    assert all(summary for _, _, summary in left_out)
    assert not_run(AuditFiles(planted.records).in_memory) == []
