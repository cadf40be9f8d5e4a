"""Judge an audit from its records: the checks, the strongest method, and the headline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recollect.auditing import checks
from recollect.auditing.attraction import Attraction, with_outcome
from recollect.auditing.canary_finding import CanaryFinding, Coins, find_canaries
from recollect.auditing.checks import Check
from recollect.auditing.diffusion_model import bounded
from recollect.auditing.doubts import Evidence, find_doubts
from recollect.auditing.headline import Finding, attribution, find, headline
from recollect.auditing.inputs import Inputs
from recollect.auditing.method_setup import (
    attacks,
    class_value,
    counted_methods,
    names_with,
    strongest_attack,
    strongest_left_out,
    weaknesses,
)
from recollect.auditing.stability import Stability
from recollect.auditing.statistics import Statistics, found_among_samples
from recollect.auditing.thresholds import APPROXIMATELY, EXACT, Threshold, supported_by
from recollect.auditing.tuning import GAMMAS
from recollect.auditing.verdict import Gate, Verdict, decide_for
from recollect.counting import of_kind
from recollect.records import ANY_MASK, Record


@dataclass(frozen=True)
class Judgement:
    """What an audit concludes."""

    main_method: str
    counted: list[str]
    generated: Mapping[str, float]
    headline: str
    finding: Finding
    canaries: CanaryFinding | None
    verdict: Verdict | None
    attribution: str | None
    checks: list[Check]
    attractors: list[dict[str, Any]] | None


def judge(
    inputs: Inputs, facts: Mapping[str, Any], records: list[Record], attraction: Attraction | None,
    gate: Gate | None = None,
) -> Judgement:  # fmt: skip
    """Draw conclusions from records; nothing is measured here."""
    threshold = headline_threshold(inputs, records, facts["model"]["train_loss"])
    statistics, settings = statistics_of(inputs.methods, records, threshold), facts["settings"]
    statistics = replace(statistics, generated=found_among_samples(facts))
    kind = inputs.sets["train"].kind
    finding = find(statistics, threshold, kind)
    rows, stability = _attractors(inputs, records, attraction), Stability.of(facts["stability"], threshold.mse)
    findings = [*_model_checks(facts["model"], inputs), *_image_checks(inputs), *_record_checks(inputs, facts, records)]
    findings.append(checks.check_stability(stability))
    if rows is not None:
        findings.append(checks.check_attractors(rows))
    elif attraction is not None:
        findings.append(_no_attractors(attraction))
    if facts["prior"]:
        findings += _prior_checks(facts["prior"], records)
    return Judgement(
        main_method=statistics.main_method,
        counted=statistics.counted,
        generated=statistics.generated,
        headline=_headline(finding, inputs.methods[statistics.main_method], kind),
        finding=finding,
        canaries=_canaries(inputs, statistics, threshold),
        verdict=_verdict(gate, inputs, facts, statistics) if gate else None,
        attribution=attribution(statistics, facts["prior"], settings["without_model"], settings["noise_std"]),
        checks=[replace(check, sentence=of_kind(check.sentence, kind)) for check in findings],
        attractors=rows,
    )


def _headline(finding: Finding, method: Any, kind: str) -> str:
    sees_model, subject = (class_value(method, name) for name in ("sees_model", "headline_subject"))
    return headline(finding, sees_model=sees_model, subject=subject, kind=kind)


def headline_threshold(inputs: Inputs, records: list[Record], train_loss: float) -> Threshold:
    """Choose the exact threshold where the fit supports it, and where it counts all that is recovered by eye.

    A model whose images are all recovered approximately and none exactly would else be headlined with 0. Canaries take
    what the fit supports: their bound may not depend on the result.
    """
    supported = supported_by(train_loss)
    if inputs.canaries is not None or supported == APPROXIMATELY:
        return supported
    counted = counted_methods(inputs.methods)
    errors = Statistics(records, counted[0], counted=counted).any_attack("train")
    exactly, by_eye = (errors.rate(threshold.mse).count for threshold in (EXACT, APPROXIMATELY))
    return EXACT if exactly == by_eye > 0 else APPROXIMATELY


def statistics_of(methods: Mapping[str, Any], records: list[Record], threshold: Threshold) -> Statistics:
    """Choose the strongest single attack: the one that recovers most under any mask; of equal ones the first."""
    counted = counted_methods(methods)
    every = Statistics(records, counted[0], counted=counted)
    strongest = max(counted, key=lambda method: every.rate("train", ANY_MASK, method, threshold.mse).count)
    return Statistics(records, strongest, counted=counted)


def _canaries(inputs: Inputs, statistics: Statistics, threshold: Threshold) -> CanaryFinding | None:
    if inputs.canaries is None:
        return None
    coins = Coins(inputs.canaries.design, inputs.canaries.repeats_of, inputs.canaries.commitment)
    return find_canaries(statistics, coins, threshold)


def _verdict(gate: Gate, inputs: Inputs, facts: Mapping[str, Any], statistics: Statistics) -> Verdict:
    on_control = statistics.any_attack("control") if statistics.has_control else None
    evidence = Evidence(
        facts["model"], inputs.probe, _attacked(inputs, statistics.records), on_control,
        kept=inputs.most_kept,
        noise_std=facts["settings"]["noise_std"],
        strongest_left_out=strongest_left_out(inputs.methods),
        weaknesses=_weaknesses(inputs),
        stop_at_limit=names_with(inputs.methods, "stops_at_limit"),
        stability=Stability.of(facts["stability"], gate.threshold.mse),
    )  # fmt: skip
    doubts = list(find_doubts(evidence, gate.threshold))
    verdict = decide_for(gate, statistics, len(facts["train"]["repeated"]), doubts)
    return replace(verdict, reason=of_kind(verdict.reason, inputs.sets["train"].kind))


def _weaknesses(inputs: Inputs) -> list[str]:
    """Compare the strongest attack with what it is if an audit builds it."""
    strongest = strongest_attack()
    (usual,) = bounded({strongest.name: strongest()}, inputs.model).values()
    return weaknesses(inputs.methods, usual, GAMMAS)


def _attacked(inputs: Inputs, records: list[Record]) -> list[Record]:
    """Take the records of attacks on training images."""
    names = attacks(inputs.methods)
    return [record for record in records if record.cell["set"] == "train" and record.cell["method"] in names]


def _model_checks(model: Mapping[str, Any], inputs: Inputs) -> Iterator[Check]:
    yield checks.check_determinism(inputs.probe.deterministic)
    if form := checks.check_form(model.get("audited_as")):
        yield form
    if batch := checks.check_batch(inputs.probe.batch_influence):
        yield batch
    if values := checks.check_range(inputs.probe.range_doubt):
        yield values
    if weights := checks.check_weights(model["weights_given"], model["train_loss"]):
        yield weights
    yield checks.check_fit(model["train_loss"])
    if copying := checks.check_copying(model["damage_moved"]):
        yield copying


def _image_checks(inputs: Inputs) -> Iterator[Check]:
    duplicates, control = inputs.duplicates, inputs.scored.get("control")
    yield checks.check_control(len(control) if control else None)
    if control:
        yield checks.check_overlap([pair.first for pair in duplicates.across], duplicates.control_count)
    yield checks.check_duplicates(len(duplicates.inside), duplicates.train_count)
    if inputs.black_masks:
        yield checks.check_black(inputs.scored["train"])


def _record_checks(inputs: Inputs, facts: Mapping[str, Any], records: list[Record]) -> Iterator[Check]:
    methods = inputs.methods
    rules = names_with(methods, "needs_black_fill")
    beside = []
    for rule in rules:
        beside += names_with(methods, "companion", class_value(methods[rule], "name"))
    under_black = [record for record in records if record.cell["mask"] in inputs.black_masks]
    if guess := checks.check_zero_rule(under_black, rules, beside):
        yield guess
    yield checks.check_stops(records, names_with(methods, "stops_at_limit"))
    yield checks.check_rounding(records, facts["model"]["rounding"])


def _prior_checks(prior: Mapping[str, Any], records: list[Record]) -> Iterator[Check]:
    yield checks.check_prior(prior)
    if strength := checks.check_prior_strength(records, prior["methods"], prior["beside"]):
        yield strength


def _attractors(inputs: Inputs, records: list[Record], attraction: Attraction | None) -> list[dict[str, Any]] | None:
    if attraction is None or attraction.rows is None:
        return None
    return with_outcome(attraction.rows, _attacked(inputs, records))


def _no_attractors(attraction: Attraction) -> Check:
    return Check("attractors", "warning", f"Attractors could not be examined: {attraction.problem}")
