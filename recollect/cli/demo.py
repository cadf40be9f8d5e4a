"""recollect demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INTRODUCTION = """\
An autoencoder is trained until it reproduces 40 photographs. Copies of these are then damaged, by erasing pixels in
six ways, and the network alone is used to restore them. It does the same with 40 photographs that it never saw: what
comes back of the first and not of the second was remembered.
"""


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the network, the results and the report.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of words.")] = False,
) -> None:
    """See the whole of it on bundled photographs: train, damage, restore, report. Takes about two minutes."""
    from recollect.cli.audit import tell
    from recollect.cli.audit_progress import Narration
    from recollect.cli.training_progress import training_report
    from recollect.demo import audit_demo_network, train_demo_network

    say = (lambda _words: None) if as_json else typer.echo
    say(f"{INTRODUCTION}\nTraining, to a mean square error of 1e-8 ...")
    with training_report() as report:
        training = train_demo_network(out / "training", report)
    say(f"{training.why}\n\nAuditing, with six ways of erasing pixels and a control set ...")
    with Narration(quiet=as_json) as narrate:
        found = audit_demo_network(training.network, out / "audit", narrate)
    say("")
    tell(found, out / "audit", as_json)
