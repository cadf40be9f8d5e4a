"""recollect: the root command, its exit codes, and how a user's mistake is printed."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recollect.cli import audit, canaries, data, demo, denoiser, extract, paper, plan, saved_audits, signals, train
from recollect.cli.endings import details_of, ending_of
from recollect.cli.listings import ListingCommand
from recollect.cli.printing import echo, plain_warnings

EPILOG = """\
Exit codes:

- 0 done

- 1 not finished: time limit, loss not reached, cells not computed, too little memory, or an error of the model

- 2 invalid usage, explained in one sentence on stderr

- 3 failed: above --fail-above, or recollect verify found a difference

- 4 inconclusive: neither passed nor failed

- 130, 143 interrupted with Ctrl-C, or with SIGTERM; the same command resumes
"""


_OF_TYPER = (typer.Exit, typer.Abort, BrokenPipeError)  # endings that typer itself handles


class Root(TyperGroup):
    """Prints what ends a command early as one sentence with an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with signals.raising(), plain_warnings():
                return super().invoke(ctx)
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, _OF_TYPER) or hasattr(error, "format_message"):  # a usage error, which typer prints
                raise
            if isinstance(error.__context__, BrokenPipeError) and isinstance(error, SystemExit):  # rich leaves so
                raise
            sentence, code = ending_of(error, ctx.invoked_subcommand)
            if ctx.params["debug"]:
                echo(details_of(error), err=True)
            echo(sentence, err=True)
        raise typer.Exit(code)


app = typer.Typer(
    name="recollect",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure how many training images can be recovered from an autoencoder or a diffusion model.\n\n"
    "Begin with **recollect demo**, which needs no model and no images. For a model of your own, **recollect data** "
    "lists sources of images and **recollect audit** measures the model. **recollect train** trains a network to try "
    "it on. **recollect paper** repeats the experiments of the paper.",
    epilog=EPILOG,
)
app.command("demo")(demo.demo_command)
app.command("audit", cls=ListingCommand, epilog=audit.EPILOG)(audit.audit_command)
app.command("extract", cls=ListingCommand, epilog=extract.EPILOG)(extract.extract_command)
app.command("train", cls=ListingCommand, epilog=train.EPILOG)(train.train_command)
app.command("plan")(plan.plan_command)
app.command("verify")(saved_audits.verify_command)
app.command("report")(saved_audits.report_command)
app.command("compare")(saved_audits.compare_command)
app.add_typer(canaries.app, name="canaries")
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")
app.add_typer(denoiser.app, name="denoiser")


def _print_version(wanted: bool) -> None:
    if wanted:
        from recollect.version import __version__

        echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
    debug: Annotated[  # read where errors are printed
        bool, typer.Option("--debug", help="Print the traceback before the error message.")
    ] = False,
) -> None:
    """Options before a command."""
