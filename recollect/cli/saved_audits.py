"""recollect verify, report and compare: work with saved audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.printing import echo, visible_console

if TYPE_CHECKING:
    from recollect.auditing.compare import Comparison

NOT_VERIFIED = 3
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of an audit.")]


def verify_command(folder: Folder) -> None:
    """Check a saved audit: the hashes of its files, and every rate once more from the per-image errors.

    Exits with 3 if anything differs.
    """
    from recollect.auditing.verify import verify_audit

    verification = verify_audit(folder)
    echo(str(verification))
    if not verification.passed:
        raise typer.Exit(NOT_VERIFIED)


def report_command(folder: Folder) -> None:
    """Make the report of a saved audit again."""
    from recollect.auditing.manifest import renew_hash
    from recollect.report import write_report

    path = write_report(folder)
    renew_hash(folder, path.name)
    echo(f"The report: {path}")


def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of an audit.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another audit of the same images.")],
    threshold: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="The error below which an image counts as recovered: exact, approximate or a number."
        ),
    ] = "approximate",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Put two audits of the same images side by side, with McNemar's paired test."""
    from recollect.auditing.compare import compare_audits
    from recollect.auditing.result import Audit
    from recollect.auditing.thresholds import read_threshold
    from recollect.report.read import read_audit

    limit = read_threshold(threshold)
    one, other = (Audit.of(read_audit(folder, pictures=False)) for folder in (first, second))
    rows = compare_audits(one, other, limit)
    if as_json:
        echo(json.dumps([row.facts() for row in rows], indent=1))
        return
    echo(f"Images recovered under any mask ({limit}); A is {first}, B is {second}")
    _print_table(rows)


def _print_table(rows: list[Comparison]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from recollect.records import SET_LABELS

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in ("set", "method", "A", "B", "only A", "only B", "p (McNemar)"):
        table.add_column(title, no_wrap=title != "method")
    for row in rows:
        counts = [f"{count} of {row.images}" for count in (row.first, row.second)]
        label, differences = SET_LABELS[row.set], (str(row.only_first), str(row.only_second), f"{row.p_value:.2g}")
        table.add_row(*map(Text, (label, row.method, *counts, *differences)))  # a name in brackets is no markup
    visible_console().print(table, highlight=False)
