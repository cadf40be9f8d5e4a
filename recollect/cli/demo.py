"""recollect demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the network, the results and the report.")] = Path("demo"),
) -> None:
    """Train a small network on bundled photographs, degrade them, recover them, and write a report (two minutes)."""
    from recollect.cli.narration import Narration
    from recollect.demo import demo

    typer.echo("Training a fully connected autoencoder on 40 bundled photographs, to a train loss of 1e-8 ...")
    with Narration() as narrate:
        training, found = demo(out, narrate=narrate)
    typer.echo(f"{training.why}\n\n{found}\n\nThe report: {out / 'audit' / 'report.html'}")
