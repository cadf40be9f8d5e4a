"""Sum up a run: figures as JSON, a table for the terminal and one for the page beside the record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.records import cpu_name, read_json
from recollect.version import __version__
from tests.torture.children import ROOT
from tests.torture.outcome import Outcome

RECORD = ROOT / "results" / "torture.json"
PAGE = ROOT / "results" / "torture.md"
BEGIN, END = "<!-- figures of make torture -->", "<!-- end of figures -->"


def summarize(outcomes: Sequence[Outcome], *, seed: int, minutes: float, seconds: float) -> dict[str, Any]:
    """Count trials by scenario and subject."""
    subjects: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        subjects[outcome.scenario][outcome.subject].append(outcome)
    return {
        "seed": seed,
        "minutes": minutes,
        "seconds": round(seconds),
        "recollect": __version__,
        "machine": cpu_name(),
        "total": _figures(outcomes),
        "problems": [f"{o.scenario}, {o.subject}: {o.problem}" for o in outcomes if o.problem],
        "scenarios": {
            scenario: {
                "total": _figures([o for group in groups.values() for o in group]),
                "subjects": {name: _figures(group) for name, group in sorted(groups.items())},
            }
            for scenario, groups in sorted(subjects.items())
        },
    }


def _figures(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    outcomes = list(outcomes)
    return {
        "trials": len(outcomes),
        "kills": sum(outcome.kills for outcome in outcomes),
        "refused": sum(outcome.refused for outcome in outcomes),
        "failures": sum(outcome.problem is not None for outcome in outcomes),
        "worst_seconds": round(max((outcome.seconds for outcome in outcomes), default=0.0), 2),
        "worst_megabytes": round(max((outcome.megabytes for outcome in outcomes), default=0.0)),
    }


def text_table(summary: Mapping[str, Any]) -> str:
    """All figures, for the terminal."""
    lines = [f"{'':44}{'trials':>8}{'kills':>7}{'refused':>9}{'failures':>10}{'seconds':>9}{'MB':>6}"]
    for scenario, part in summary["scenarios"].items():
        lines.append(_line(scenario, part["total"]))
        lines += [_line(f"  {name}", figures) for name, figures in part["subjects"].items()]
    return "\n".join([*lines, _line("all", summary["total"])])


def _line(name: str, figures: Mapping[str, Any]) -> str:
    return (
        f"{name:44}{figures['trials']:>8}{figures['kills']:>7}{figures['refused']:>9}{figures['failures']:>10}"
        f"{figures['worst_seconds']:>9}{figures['worst_megabytes']:>6}"
    )


def page_table(summary: Mapping[str, Any]) -> str:
    """The figures for the page beside the record."""
    parts = summary["scenarios"]
    lines = [
        f"{summary['seconds'] / 60:.0f} minutes with seed {summary['seed']} on {summary['machine']}:",
        "",
        "| tried | how often | failures | at worst |",
        "|---|---|---|---|",
    ]
    for name, figures in _subjects(parts, "kills"):
        tried = f"{figures['trials']} runs, {figures['kills']} kills"
        lines.append(f"| {name}: killed and resumed | {tried} | {figures['failures']} | |")
    lines += [_page_line(f"{name} files", figures) for name, figures in _subjects(parts, "files")]
    for scenario, title in (("records", "edited results"), ("faults", "disk, memory or output taken away")):
        if part := parts.get(scenario):
            lines.append(f"| {title} | {part['total']['trials']} runs | {part['total']['failures']} | |")
    return "\n".join([*lines, "", *_problem_lines(summary["problems"])])


def _problem_lines(problems: Sequence[str]) -> list[str]:
    """List what failed, the last line of each."""
    if not problems:
        return ["No trial failed."]
    return ["These trials failed:", "", *(f"- {problem.strip().splitlines()[-1][:160]}" for problem in problems)]


def _subjects(parts: Mapping[str, Any], scenario: str) -> list[tuple[str, Any]]:
    return list(parts[scenario]["subjects"].items()) if scenario in parts else []


def _page_line(name: str, figures: Mapping[str, Any]) -> str:
    worst = f"{figures['worst_seconds']} s, {figures['worst_megabytes']} MB"
    return f"| {name} | {figures['trials']} files, {figures['refused']} refused | {figures['failures']} | {worst} |"


def update_page() -> None:
    """Write the recorded figures into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{page_table(read_json(RECORD))}\n{END}{after}")


def written_table(page: Path = PAGE) -> str:
    """The figures on the page."""
    return page.read_text().partition(BEGIN)[2].partition(END)[0].strip()
