"""recollect: the root command, its exit codes, and how a user's mistake is told."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recollect.cli import audit, data, demo, train
from recollect.errors import InputError

USAGE_ERROR, GATE_EXCEEDED, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="recollect",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How much of its training set can be read back out of an autoencoder?",
    epilog="Start with: recollect demo. Exit codes: 0 done, 2 something was asked wrongly, "
    "3 the rate is above --fail-above, 130 interrupted.",
)
app.command("demo")(demo.demo_command)
app.command("train")(train.train_command)
app.command("audit")(audit.audit_command)
app.add_typer(data.app, name="data")


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if version:
        from recollect.version import __version__

        typer.echo(f"recollect {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake is one sentence, never a traceback."""
    try:
        app()
    except InputError as mistake:
        typer.echo(f"recollect: {mistake}", err=True)
        sys.exit(USAGE_ERROR)
    except KeyboardInterrupt:
        typer.echo(
            "\nrecollect: interrupted; what is finished is kept, and the same command goes on from there.", err=True
        )
        sys.exit(INTERRUPTED)
