"""recollect demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INTRODUCTION = """\
An autoencoder is trained until it reproduces 40 photographs. Copies of these are then damaged by erasing pixels in six
ways, and the network alone is used to recover them. The same is done with 40 photographs that the network never saw.
Training images recovered while unseen ones are not were memorized.
"""


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the network, the results and the report.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of text.")] = False,
) -> None:
    """Train a network on bundled photographs, damage them, recover them, report. Takes about two minutes."""
    from recollect import demo
    from recollect.cli.audit import print_result
    from recollect.cli.audit_progress import audit_progress
    from recollect.cli.training_progress import training_report

    def say(text: str) -> None:
        if not as_json:
            typer.echo(text)

    say(f"{INTRODUCTION}\nTraining, to a mean square error of 1e-8 ...")
    with training_report() as report:
        training = demo.DEMO.train_network(out / "training", report)
    say(f"{training.why}\n\nAuditing, with six ways of erasing pixels and a control set ...")
    with audit_progress(quiet=as_json) as progress:
        result = demo.DEMO.audit_network(training.network, out / "audit", progress)
    say("")
    print_result(result, out / "audit", as_json)
