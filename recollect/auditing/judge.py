"""Judge an audit from its records: the checks, the method that leads, and the headline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recollect.auditing import checks
from recollect.auditing.attraction import Attraction, with_outcome
from recollect.auditing.checks import Check
from recollect.auditing.headline import attribution, headline
from recollect.auditing.inputs import Inputs
from recollect.auditing.method_setup import attacks, main_method, names_where, trait
from recollect.auditing.statistics import Statistics
from recollect.records import Record


@dataclass(frozen=True)
class Judgement:
    """What an audit concludes."""

    main_method: str
    headline: str
    attribution: str | None
    checks: list[Check]
    attractors: list[dict[str, Any]] | None


def judge(inputs: Inputs, facts: Mapping[str, Any], records: list[Record], attraction: Attraction | None) -> Judgement:
    """Draw conclusions from records; nothing is measured here."""
    leading = main_method(inputs.methods)
    statistics, method, settings = Statistics(records, leading), inputs.methods[leading], facts["settings"]
    rows = _attractors(inputs, records, attraction)
    findings = [*_model_checks(facts["model"], inputs), *_image_checks(inputs), *_record_checks(inputs, facts, records)]
    if attraction is not None:
        findings.append(checks.check_attractors(rows) if rows is not None else _no_attractors(attraction))
    if facts["prior"]:
        findings += _prior_checks(facts["prior"], records)
    return Judgement(
        main_method=leading,
        headline=headline(statistics, sees_model=trait(method, "sees_model"), knowledge=trait(method, "knowledge")),
        attribution=attribution(statistics, facts["prior"], settings["without_model"], settings["noise_std"]),
        checks=findings,
        attractors=rows,
    )


def _model_checks(model: Mapping[str, Any], inputs: Inputs) -> Iterator[Check]:
    yield checks.check_determinism(inputs.probe.deterministic)
    yield checks.check_fit(model["train_loss"])
    if copying := checks.check_copying(model["damage_moved"]):
        yield copying


def _image_checks(inputs: Inputs) -> Iterator[Check]:
    duplicates, control = inputs.duplicates, len(inputs.sets.get("control", ()))
    yield checks.check_control(control or None)
    if control:
        yield checks.check_overlap(len(duplicates.across), control)
    yield checks.check_duplicates(len(duplicates.inside), duplicates.train_count)
    if inputs.black_masks:
        yield checks.check_black(inputs.scored["train"])


def _record_checks(inputs: Inputs, facts: Mapping[str, Any], records: list[Record]) -> Iterator[Check]:
    methods = inputs.methods
    rules = names_where(methods, "only_black")
    beside = [n for rule in rules for n in names_where(methods, "companion", trait(methods[rule], "name"))]
    under_black = [record for record in records if record.cell["mask"] in inputs.black_masks]
    if guess := checks.check_zero_rule(under_black, rules, beside):
        yield guess
    yield checks.check_stops(records, names_where(methods, "stops_at_limit"))
    yield checks.check_rounding(records, facts["model"]["rounding"])


def _prior_checks(prior: Mapping[str, Any], records: list[Record]) -> Iterator[Check]:
    yield checks.check_prior(prior)
    if strength := checks.check_prior_strength(records, prior["methods"], prior["beside"]):
        yield strength


def _attractors(inputs: Inputs, records: list[Record], attraction: Attraction | None) -> list[dict[str, Any]] | None:
    if attraction is None or attraction.rows is None:
        return None
    counted = attacks(inputs.methods)
    attacked = [r for r in records if r.cell["set"] == "train" and r.cell["method"] in counted]
    return with_outcome(attraction.rows, attacked)


def _no_attractors(attraction: Attraction) -> Check:
    return Check("attractors", "warning", f"Attractors could not be examined: {attraction.problem}")
