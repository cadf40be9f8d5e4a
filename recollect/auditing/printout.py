"""An audit in a terminal: tables that wrap by words, and the verdict last, where the eye is.

Nothing is computed here: every number comes from the audit's statistics, finding and verdict.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.auditing.checks import Check
from recollect.auditing.statistics import OVERALL, cost_rows
from recollect.auditing.thresholds import NAMED, Threshold
from recollect.counting import counted
from recollect.records import ANY_MASK, SET_LABELS
from recollect.scoring import Excess, Rate, percent_range, rounded_percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from recollect.auditing.result import Audit

COLOURS = {"passed": "bold green", "failed": "bold red", "inconclusive": "bold yellow"}
LEVELS = {"warning": "yellow", "note": "dim"}  # warnings come first
SHORT_METHODS, SHORT_CHECKS = 5, 2  # of a printout that fits one screen
TEXT_WIDTH = 100


def as_text(audit: Audit, *, verbose: bool = True) -> str:
    """Write an audit as plain text."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None)
    print_audit(audit, console, verbose=verbose)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def print_audit(audit: Audit, console: Console, *, verbose: bool = False, report: str = "") -> None:
    """Print an audit; without `verbose` in at most 25 lines of 80 characters."""
    for part in _parts(audit, verbose, report):
        console.print(part, highlight=False)


def _parts(audit: Audit, verbose: bool, report: str) -> Iterator[RenderableType]:
    most = len(audit.methods) if verbose else SHORT_METHODS
    yield from _methods(audit, most)
    yield from _generated(audit)
    if verbose:
        yield from _details(audit)
        yield from _all_checks(audit.checks)
    else:
        yield from _short_checks(audit.checks)
    if report:
        yield f"The report: {report}\n"
    yield from _conclusion(audit, verbose)


def _conclusion(audit: Audit, verbose: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    if audit.canaries:
        yield Text(str(audit.canaries))
    yield Text(audit.headline, style="bold")
    if verbose:
        yield Text(audit.finding.beside)
    if audit.verdict:
        yield ""
        sentence = Text(str(audit.verdict))
        sentence.stylize(COLOURS[audit.verdict.outcome], 0, len(audit.verdict.opening))
        yield sentence


def _details(audit: Audit) -> Iterator[RenderableType]:
    for threshold in NAMED.values():
        yield from _by_mask(audit, threshold)
    if audit.attribution:
        yield f"{audit.attribution}\n"
    if audit.membership_sentence:
        yield f"{audit.membership_sentence}\n"
    settings = audit.facts["settings"]
    if tuned := settings.get("tuning_images_left_out"):
        searched = counted(len(tuned), "other training image")
        levels = {row.get("noise_level") for row in settings.get("tried", [])}
        chosen = "Noise level, gamma and start" if len(levels) > 1 else "Gamma and start"
        yield f"{chosen} were searched on {searched}, left out of every rate.\n"


def _all_checks(checks: Sequence[Check]) -> Iterator[RenderableType]:
    from rich.text import Text

    worrying = [check for level in LEVELS for check in checks if check.level == level]
    for check in worrying:
        yield Text.assemble((f"{check.level}: ", LEVELS[check.level]), check.sentence)
    if worrying:
        yield ""


def _short_checks(checks: Sequence[Check]) -> Iterator[RenderableType]:
    """Give warnings one line each, cut at the end of the line, and count the rest."""
    from rich.table import Table
    from rich.text import Text

    warnings = [check for check in checks if check.level == "warning"]
    lines = Table.grid()
    lines.add_column(no_wrap=True, overflow="ellipsis")
    for check in warnings[:SHORT_CHECKS]:
        lines.add_row(Text.assemble(("warning: ", LEVELS["warning"]), check.sentence))
    if warnings:
        yield lines
    rest = _left_out(len(warnings[SHORT_CHECKS:]), sum(check.level == "note" for check in checks))
    if warnings or rest:
        yield Text(f"{rest or 'The warnings in full'}: see --verbose or the report.", style="dim")
        yield ""


def _left_out(warnings: int, notes: int) -> str:
    counts = {"more warning": warnings, "note": notes}
    listed = " and ".join(counted(count, what) for what, count in counts.items() if count)
    return f"{listed} on these numbers" if listed else ""


def _methods(audit: Audit, most: int) -> Iterator[RenderableType]:
    """List what each method recovers under any mask, at the threshold of the headline."""
    finding, threshold = audit.finding, audit.finding.threshold
    masks = f"any of {finding.masks} masks" if finding.masks > 1 else "one mask"
    yield f"Recovered under {masks} ({threshold}), with 95% intervals"
    table = _table("method", audit.sets, kind=audit.kind)
    if len(finding.methods) > 1:
        both = [rate for rate in (finding.train, finding.control) if rate]
        table.add_row("any attack", *map(_counted, both), style="bold")
    shown = sorted(audit.methods, key=lambda name: name not in finding.methods)[:most]
    for method in shown:
        label = method if method in finding.methods else f"{method} (reference)"
        table.add_row(label, *[_counted(audit.rate(s, ANY_MASK, method, threshold.mse)) for s in audit.sets])
    yield table
    yield ""


def _generated(audit: Audit) -> Iterator[RenderableType]:
    """Say how many training images were found among samples, with the cost."""
    generated = audit.facts.get("generated")
    if not generated:
        return
    yield (
        f"Generate and filter: {generated['distinct']['approximate']} of {generated['training_images']} training "
        f"images were found among {generated['samples']:,} samples, at {_evaluations(generated)}."
    )
    for cost in cost_rows(audit):
        if cost["method"] == audit.main_method:
            yield f"{audit.main_method}: {cost['recovered']} of them approximately, at {_evaluations(cost)}."
    yield ""


def _evaluations(cost: Mapping[str, Any]) -> str:
    each = cost["evaluations_each"]
    total = f"{cost['evaluations']:,} network evaluations"
    return total if each is None else f"{total}, {each:,.0f} for each image"


def _by_mask(audit: Audit, threshold: Threshold) -> Iterator[RenderableType]:
    """List the rates of the strongest attack for each mask, with the excess over unseen images."""
    method, masks = audit.main_method, audit.masks
    rows = [*masks, *OVERALL] if len(masks) > 1 else masks
    more = ["excess"] if audit.has_control else []
    yield f"{method}, {threshold}, in percent with 95% intervals"
    table = _table("mask", audit.sets, more, kind=audit.kind)
    for mask in rows:
        numbers = [_percent(audit.rate(s, mask, method, threshold.mse)) for s in audit.sets]
        excess = audit.excess(method, threshold.mse, mask)
        if excess:
            numbers.append(_signed(excess))
        table.add_row(mask, *numbers)
    yield table
    yield ""


def _table(first: str, sets: Sequence[str], more: Sequence[str] = (), kind: str = "images") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in [*(f"{SET_LABELS[name]} {kind}" for name in sets), *more]:
        table.add_column(name, no_wrap=True)
    return table


def _counted(rate: Rate) -> str:
    return f"{rate.of_total} ({percent_range(*rate.interval)})"


def _percent(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rounded_percent(rate.value)} [{rounded_percent(low)}, {rounded_percent(high)}]"


def _signed(above: Excess) -> str:
    return f"{100 * above.value:+.0f} [{100 * above.low:+.0f}, {100 * above.high:+.0f}]"
