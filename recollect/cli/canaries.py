"""recollect canaries: make images that a fair coin puts into a training set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.early_checks import check_folder, check_source
from recollect.cli.listings import ListingCommand
from recollect.cli.printing import echo
from recollect.errors import InputError
from recollect.files.names import printable

app = typer.Typer(
    no_args_is_help=True, help="Make canaries: images that a fair coin puts into the training set or leaves out."
)


@app.command("make", cls=ListingCommand)
def make(
    like: Annotated[str, typer.Option(metavar="SOURCE", help="Images that canaries resemble. {sources}")],
    count: Annotated[int, typer.Option(help="How many canaries; about half go into the training set.")] = 200,
    out: Annotated[Path, typer.Option(help="A new folder for the canaries.")] = Path("canaries"),
    repeats: Annotated[
        str,
        typer.Option(
            help="How often a canary is in the training set. Each number gets an equal share of the canaries."
        ),
    ] = "1,4,16",
    delta: Annotated[float, typer.Option(help="Delta of the privacy bound, fixed before training.")] = 1e-5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the images and the coins.")] = 42,
) -> None:
    """Draw canaries before training: images, and a fair coin for each that puts it in or leaves it out.

    Add the files of OUT/train to the training set, train, then run recollect audit MODEL --canaries OUT.
    """
    from recollect.canaries.design import Design, check_draw

    numbers, design = read_repeats(repeats), Design(delta)
    check_draw(count, numbers)
    check_source(like)
    check_folder(out)

    from recollect.canaries import make_canaries, write_canaries

    canaries = make_canaries(like, count, repeats=numbers, seed=seed, delta=design.delta)
    folder = printable(str(write_canaries(canaries, out)))
    inside, files = len(canaries.train), len(canaries.training_images)
    echo(f"{inside} of {count} canaries go into the training set: add all {files} files of {folder}/train to it.")
    echo(f"Train on no file of {folder}/audit: recollect audit MODEL --canaries {folder} reads those after training.")
    echo(f"Commitment to images and coins, to be published before training: {canaries.commitment}")


def read_repeats(text: str) -> list[int]:
    """Read whole numbers that are separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--repeats takes whole numbers such as 1,4,16, not {text!r}.") from None
