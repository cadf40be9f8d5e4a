"""recollect canaries: make images that a fair coin puts into a training set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.listings import ListingCommand
from recollect.cli.printing import echo
from recollect.errors import InputError
from recollect.names import printable

app = typer.Typer(
    no_args_is_help=True, help="Canaries: images that a fair coin puts into a training set or leaves out."
)


@app.command("make", cls=ListingCommand)
def make(
    like: Annotated[str, typer.Option(metavar="SOURCE", help="Images that the canaries are to be like. {sources}")],
    count: Annotated[int, typer.Option(help="How many canaries; about half of them are in.")] = 200,
    out: Annotated[Path, typer.Option(help="A new folder for the canaries.")] = Path("canaries"),
    repeats: Annotated[
        str, typer.Option(help="How often a canary is in the training set; each number gets an equal share of them.")
    ] = "1,4,16",
    delta: Annotated[float, typer.Option(help="Of the bound on epsilon. It is fixed here, before training.")] = 1e-5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the images and the coins.")] = 42,
) -> None:
    """Draw canaries before training: images, and a fair coin for each that puts it in or leaves it out.

    Add the files of OUT/train to the training set, train, then run recollect audit MODEL --canaries OUT.
    """
    from recollect.canaries import make_canaries, write_canaries

    canaries = make_canaries(like, count, repeats=read_repeats(repeats), seed=seed, delta=delta)
    folder = printable(str(write_canaries(canaries, out)))
    inside, files = len(canaries.train), len(canaries.training_images)
    echo(f"{inside} of {count} canaries are in. Add all {files} files of {folder}/train to the training set.")
    echo(f"Train on no file of {folder}/audit: recollect audit MODEL --canaries {folder} reads those after training.")
    echo(f"Commitment to images and coins, to be published before training: {canaries.commitment}")


def read_repeats(text: str) -> list[int]:
    """Read whole numbers that are separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--repeats takes whole numbers such as 1,4,16, not {text!r}.") from None
