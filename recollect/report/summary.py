"""The first screen: outcome, headline, two numbers, the attack, and cards that lead to the sections."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.records import ANY_MASK, SET_LABELS
from recollect.report.numbers import (
    calendar_date,
    counted,
    decimals,
    grey_levels,
    percent_range,
    two_digits,
    whole_percent,
)
from recollect.report.read import SavedAudit
from recollect.report.results import Results

Checks = Mapping[str, Sequence[Mapping[str, str]]]  # by level
_INTERVAL = re.compile(r" \(95% interval [^)]*\)")
_BADGES = {
    "passed": "Passed: within the limit of {limit}",
    "failed": "Failed: above the limit of {limit}",
    "inconclusive": "Inconclusive: not shown to be within {limit}",
}
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
        return f"95% interval {percent_range(self.share['low'], self.share['high'])}"


@dataclass(frozen=True)
class Card:
    """A short finding that leads to its section; the level decides its colour."""

    title: str
    text: str
    section: str
    level: str = ""


def badge(audit: SavedAudit) -> Badge:
    """Name the outcome and the limit."""
    verdict = audit.block("verdict")
    if not verdict:
        return Badge("none", "No limit set")
    return Badge(verdict["outcome"], _BADGES[verdict["outcome"]].format(limit=f"{100 * verdict['limit']:g}%"))


def lead_sentence(headline: str) -> str:
    """Take the first sentence of the headline; its interval stands beside the big number."""
    first, stop, _ = headline.partition(". ")
    return _INTERVAL.sub("", first + stop.strip())


def big_numbers(audit: SavedAudit) -> list[BigNumber]:
    """List the share of training images, and that of unseen images if there are any."""
    finding = audit.block("finding")
    present = [name for name in SET_LABELS if finding.get(name)]
    return [BigNumber(name, f"{SET_LABELS[name]} images recovered", finding[name]) for name in present]


def handed_out(audit: SavedAudit) -> str:
    """Say how many training images came out of unseen ones; nothing if none did."""
    returned = audit.block("finding").get("returned", {}).get("control")
    if not returned or not returned["different"]:
        return ""
    what = "1 training image" if returned["different"] == 1 else f"{returned['different']} different training images"
    damaged = counted(returned["images"], "damaged image")
    return f"From {damaged} it never saw, the model returned {what}."


def attack_sentences(audit: SavedAudit, results: Results) -> list[str]:
    """Name what was tried, the best attack, and what counts as recovered."""
    finding = audit.block("finding")
    if not finding:
        return []
    threshold, best = finding["threshold"]["mse"], finding["best"]
    alone = f" Best alone: {best['method']}, {best['train']['count']} of {best['train']['total']}."
    return [
        _tried(finding["methods"], results) + (alone if len(finding["methods"]) > 1 else ""),
        f"Recovered means an error below {two_digits(grey_levels(threshold))} of 255 grey levels (MSE below "
        f"{threshold:.0e}).",
    ]


def cards(audit: SavedAudit, checks: Checks) -> list[Card]:
    """Sum up checks, warnings, membership and limits."""
    return [_passed(checks), _worries(checks), _membership(audit), _limits()]


def run_facts(audit: SavedAudit) -> list[str]:
    """Say when, with which version and on how many images the audit ran."""
    provenance = audit.block("provenance")
    sizes = [
        f"{audit.block(name)['images']} {label}" for name, label in SET_LABELS.items() if "images" in audit.block(name)
    ]
    version = (provenance.get("versions") or {}).get("recollect")
    facts = [calendar_date(provenance.get("started")), f"recollect {version}" if version else ""]
    return [fact for fact in [*facts, f"{' / '.join(sizes)} images" if sizes else ""] if fact]


def _tried(methods: Sequence[str], results: Results) -> str:
    names, under = ", ".join(methods), f"under {counted(len(results.masks), 'mask')}"
    facts = [results.method_facts[name] for name in methods if name in results.method_facts]
    if all(method.is_attack for method in facts):
        return f"{counted(len(methods), 'attack').capitalize()} ({names}) {under}, not told which pixels were erased."
    return f"No attack, but a reference ({names}) {under}, told which pixels were erased."


def _passed(checks: Checks) -> Card:
    names = [check["name"] for check in checks["ok"]]
    if not names:
        return Card("No check passed", "Read the warnings and notes.", "checks")
    return Card(f"✓ {counted(len(names), 'check')} passed", ", ".join(names), "checks", "ok")


def _worries(checks: Checks) -> Card:
    counts = [counted(len(checks[level]), level) for level in ("warning", "note") if checks[level]]
    if not counts:
        return Card("No warnings", "Nothing was found that could mislead.", "checks", "ok")
    names = [_WORRIES.get(check["name"], check["name"]) for level in ("warning", "note") for check in checks[level]]
    return Card(", ".join(counts), " · ".join(names), "checks", "warning" if checks["warning"] else "note")


def _membership(audit: SavedAudit) -> Card:
    method = audit.facts.get("main_method")
    rows = [row for row in audit.table("membership") if (row["mask"], row["method"]) == (ANY_MASK, method)]
    if not rows:
        return Card("Membership", "Not measured: there are no unseen images.", "checks")
    row = rows[0]
    auc = f"AUC {decimals(row['auc'], 2)} ({decimals(row['auc_low'], 2)}–{decimals(row['auc_high'], 2)})"
    meaning = "training images stand out" if row["auc_low"] > 0.5 else "no better than guessing"
    return Card("Membership", f"{auc}: {meaning}.", "curves")


def _limits() -> Card:
    return Card("What this does not show", "A low rate does not mean safe: other attacks may recover more.", "scope")
