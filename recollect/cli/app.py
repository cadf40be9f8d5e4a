"""recollect: the root command, its exit codes, and how a user's mistake is printed."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recollect.cli import audit, data, demo, paper, prior, train
from recollect.cli.listings import ListingCommand
from recollect.errors import InputError, told

EPILOG = """\
Exit codes:

- 0 done

- 1 not finished: a loss not reached, cells not computed

- 2 invalid usage, explained in one sentence

- 3 the rate is above --fail-above

- 130 interrupted with Ctrl-C; run the same command again to resume
"""


class Root(TyperGroup):
    """Prints a user's mistake as one sentence with an exit code, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, KeyboardInterrupt) as ended:
            sentence, code = told(ended)
            typer.echo(sentence, err=True)
            raise typer.Exit(code) from None


app = typer.Typer(
    name="recollect",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure how much of its training set can be recovered from an autoencoder.\n\n"
    "Begin with **recollect demo**, which needs nothing. For a model of your own, **recollect data** lists sources of "
    "images and **recollect audit** measures the model. **recollect train** trains a network to try it on. "
    "**recollect paper** repeats the experiments of the paper.",
    epilog=EPILOG,
)
app.command("demo")(demo.demo_command)
app.command("audit", cls=ListingCommand, epilog=audit.EPILOG)(audit.audit_command)
app.command("train", cls=ListingCommand, epilog=train.EPILOG)(train.train_command)
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")
app.add_typer(prior.app, name="prior")


def _print_version(wanted: bool) -> None:
    if wanted:
        from recollect.version import __version__

        typer.echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Options before a command."""


def main() -> None:
    """Run the command line."""
    app(prog_name="recollect")
