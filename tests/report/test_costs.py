from recollect.report.costs import Cost, build_costs
from tests.report.making import AuditFiles

BLIND = {
    "method": "blind", "evaluations": 16_000, "evaluations_a_try": 133.4, "recovered": 8, "evaluations_each": 2000.0
}  # fmt: skip


def test_methods_and_generated_images_are_compared_by_network_evaluations() -> None:
    generated = {
        "samples": 2048, "training_images": 1000, "distinct": {"approximate": 0}, "evaluations": 79_872,
        "evaluations_each": None,
    }  # fmt: skip
    facts = {"train": {"images": 40}, "costs": [BLIND], "generated": generated}
    assert build_costs(AuditFiles(facts=facts).in_memory) == [
        Cost("blind", "133", "16,000", "8 of 40", "2,000"),
        Cost("generate and filter, 2,048 samples", "39", "79,872", "0 of 1,000", "–"),
    ]


def test_an_audit_without_them_has_none() -> None:
    assert build_costs(AuditFiles(facts={"generated": None}).in_memory) == []
