"""The first screen: outcome, headline, two numbers, the attack, and cards that lead to the sections."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.counting import counted, counted_kinds
from recollect.records import ANY_MASK, SET_LABELS
from recollect.report.numbers import (
    calendar_date,
    decimals,
    grey_levels,
    named,
    percent_above,
    percent_within,
    scientific,
    two_digits,
    whole_percent,
)
from recollect.report.read import SavedAudit
from recollect.report.results import Results
from recollect.scoring import percent_range

Checks = Mapping[str, Sequence[Mapping[str, str]]]  # by level
_INTERVAL = re.compile(r" \(95% interval [^)]*\)")
_DOUBTED = "means little. "  # of a verdict's reason; the doubts follow
_CLAUSE = re.compile(r"[.:;]|, (?:and|so|which|or) ")  # what ends the first clause of a doubt
_MOST_MASKS = 6  # that are named in a sentence
# What a check found, in the words of the first screen; it is called by its name where nothing was found.
_WORRIES = {
    "deterministic": "not deterministic", "batch": "images of a batch mix", "range": "range of values",
    "fit": "fit of the model", "copying": "copies its input", "control": "no unseen images",
    "overlap": "unseen images that were trained on", "black": "black pixels", "zero-rule": "easy masks",
    "stops": "unsettled recoveries", "float32": "rounding", "stability": "unstable answers",
    "prior-strength": "weak prior",
}  # fmt: skip


@dataclass(frozen=True)
class Badge:
    """The outcome in a few words; its name is the colour's."""

    outcome: str
    text: str


@dataclass(frozen=True)
class BigNumber:
    """A share of one set with its interval; the values are those of audit.json."""

    set: str
    label: str
    share: Mapping[str, Any]

    @property
    def percent(self) -> str:
        return whole_percent(self.share["value"])

    @property
    def count(self) -> str:
        return f"{self.share['count']} of {self.share['total']}"

    @property
    def interval(self) -> str:
        return f"95% interval {percent_range(self.share['low'], self.share['high'], '–')}"


@dataclass(frozen=True)
class Card:
    """A short finding that leads to its section; the level decides its colour."""

    title: str
    text: str
    section: str
    level: str = ""


def badge(audit: SavedAudit) -> Badge:
    """Name the outcome, and the share that decided it beside the limit."""
    verdict = audit.block("verdict")
    if not verdict:
        return Badge("none", "No limit set")
    share, limit = verdict["limit"], f"{100 * verdict['limit']:g}%"
    judged = "{} recovered" if verdict["judged"] == "rate" else "excess over unseen images {}"
    match verdict["outcome"]:
        case "failed":
            text = f"Failed: {judged.format(percent_above(verdict['value'], share))}, at most {limit} allowed"
        case "passed":
            text = f"Passed: {judged.format('at most ' + percent_within(verdict['bound'], share))}, {limit} allowed"
        case _:
            text = f"Inconclusive: {_short_reason(verdict, limit)}"
    return Badge(verdict["outcome"], text)


def reason(audit: SavedAudit) -> str:
    """Give the verdict in full, unless badge, headline and numbers say all of it."""
    verdict, finding = audit.block("verdict"), audit.block("finding")
    if not verdict:
        return ""
    judged = (verdict["judged"], verdict["value"], verdict["threshold"]["mse"])
    in_numbers = ("rate", finding.get("train", {}).get("value"), audit.threshold)
    if verdict["outcome"] == "failed" and judged == in_numbers:
        return ""
    return str(verdict["sentence"])


def _short_reason(verdict: Mapping[str, Any], limit: str) -> str:
    """Take the first clause of the first doubt, or the number of images that are needed."""
    if verdict["images_needed"]:
        return f"too few images, at least {verdict['images_needed']:,} needed"
    _, _, doubts = verdict["reason"].partition(_DOUBTED)
    if not doubts:
        return f"not shown to be within {limit}"
    clause = _CLAUSE.split(doubts, maxsplit=1)[0]
    return clause[:1].lower() + clause[1:]


def lead_sentence(headline: str) -> str:
    """Take the first sentence of the headline; its interval stands beside the big number."""
    first, stop, _ = headline.partition(". ")
    return _INTERVAL.sub("", first + stop.strip())


def big_numbers(audit: SavedAudit) -> list[BigNumber]:
    """List the share of training images, and that of unseen images if there are any."""
    finding = audit.block("finding")
    present = [name for name in SET_LABELS if finding.get(name)]
    return [BigNumber(name, f"{SET_LABELS[name]} {audit.kind} recovered", finding[name]) for name in present]


def attack_sentences(audit: SavedAudit, results: Results) -> list[str]:
    """Say what was tried, what counts as recovered, and which attacks are the best."""
    finding = audit.block("finding")
    if not finding:
        return []
    threshold = finding["threshold"]["mse"]
    return [
        _tried(audit, finding["methods"], results),
        f"Recovered: on average less than {two_digits(grey_levels(threshold))} of 255 {_levels(audit)} off (MSE below "
        f"{scientific(threshold)}).",
        *_best(finding, results),
    ]


def _levels(audit: SavedAudit) -> str:
    return "grey levels" if audit.kind == "images" else "parts of the range"


def cards(audit: SavedAudit, checks: Checks) -> list[Card]:
    """Sum up checks, warnings, membership and limits."""
    return [_passed(checks), _worries(checks), _membership(audit), _limits(audit)]


def run_facts(audit: SavedAudit) -> list[str]:
    """Say when, with which version and on how many images the audit ran."""
    provenance = audit.block("provenance")
    facts = []
    if day := calendar_date(provenance.get("started")):
        facts.append(day)
    if version := (provenance.get("versions") or {}).get("recollect"):
        facts.append(f"recollect {version}")
    blocks = {label: audit.block(name) for name, label in SET_LABELS.items()}
    sizes = {label: block["images"] for label, block in blocks.items() if "images" in block}
    if sizes:
        facts.append(f"tested on {counted_kinds(sizes, audit.kind.removesuffix('s'))}")
    return facts


def _tried(audit: SavedAudit, methods: Sequence[str], results: Results) -> str:
    """Say how images were damaged and who tried to recover them. Not all damage is erased pixels."""
    erased = all("erased" in text for text in audit.block("settings").get("masks", {}).values())
    damage, unknown = ("Pixels were erased", "which") if erased else ("Images were damaged", "how")
    names = f" ({', '.join(results.masks)})" if len(results.masks) <= _MOST_MASKS else ""
    damaged = f"{damage} under {counted(len(results.masks), 'mask')}{names}"
    facts = [results.method_facts[name] for name in methods if name in results.method_facts]
    if not all(method.is_attack for method in facts):
        return f"{damaged}. No attack was run, but a reference ({', '.join(methods)}), which was told {unknown}."
    tried = f"{damaged}; {counted(len(methods), 'attack')} tried to restore them without being told {unknown}."
    attempts = len(methods) * len(results.masks)
    return f"{tried} An image counts if any attempt succeeds." if attempts > 1 else tried


def _best(finding: Mapping[str, Any], results: Results) -> list[str]:
    """Name the attacks that recover most alone; nothing if there is one attack, or none recovers any."""
    most, mask = finding["best"]["train"], results.rows[0]
    bars = {name: results.bar(("train", mask, name)) for name in finding["methods"]}
    best = [name for name, bar in bars.items() if bar and bar.rate.count == most["count"]]
    if len(bars) == 1 or not best or not most["count"]:
        return []
    if len(best) > 1:
        return [f"Each of {named(best)} recovers {most['count']}."]
    return [f"Alone, {best[0]} recovers most: {most['count']}."]


def _passed(checks: Checks) -> Card:
    names = [check["name"] for check in checks["ok"]]
    if not names:
        return Card("No check passed", "Read the warnings and notes.", "checks")
    return Card(f"The audit itself: {counted(len(names), 'check')} passed", ", ".join(names), "checks", "ok")


def _worries(checks: Checks) -> Card:
    counts = [counted(len(checks[level]), level) for level in ("warning", "note") if checks[level]]
    if not counts:
        return Card("No warnings", "Nothing was found that could mislead.", "checks", "ok")
    names = [_WORRIES.get(check["name"], check["name"]) for level in ("warning", "note") for check in checks[level]]
    level = "warning" if checks["warning"] else "note"
    return Card(f"{named(counts)} on these numbers", " · ".join(names), "checks", level)


def _membership(audit: SavedAudit) -> Card:
    method = audit.facts.get("main_method")
    rows = [row for row in audit.table("membership") if (row["mask"], row["method"]) == (ANY_MASK, method)]
    if not rows:
        return Card("Membership", "Not measured: there are no unseen images.", "checks")
    row = rows[0]
    guessing = row["auc_low"] <= 0.5 <= row["auc_high"]
    meaning = f"Training images {'cannot' if guessing else 'can'} be told from unseen ones"
    interval = f"95% interval {decimals(row['auc_low'], 2)}–{decimals(row['auc_high'], 2)}"
    return Card("Membership", f"{meaning} (AUC {decimals(row['auc'], 2)}, {interval}; 0.5 is guessing).", "curves")


def _limits(audit: SavedAudit) -> Card:
    """Say what the result leaves open: a low rate is not safety, and a high one may be higher still."""
    rate, outcome = audit.block("finding").get("train"), audit.block("verdict").get("outcome")
    if not rate or not rate["count"] or outcome in ("passed", "inconclusive"):
        text = "A low rate does not mean safe: other attacks may recover more."
    elif rate["count"] < rate["total"]:
        text = "At least this share is recovered: other attacks may recover more."
    else:
        text = "The rate holds for images sampled like these. Attacks of other kinds were not tried."
    return Card("What this does not show", text, "scope")
