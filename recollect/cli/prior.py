"""recollect prior: train a diffusion model of your own for the method ddnm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli.data import _SPELLING
from recollect.cli.train import check_device, check_folder
from recollect.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Diffusion models as generic priors, for the method ddnm.")

EPILOG = (
    "Example: recollect prior train folder:photos --max-seconds 600 --out my-prior, and then recollect audit ... "
    "--methods blind,ddnm --prior my-prior · The same command goes on where a stopped one ended."
)


@app.callback()
def group() -> None:
    """What stands before a command; with it, `train` is named even while it is the only one."""


@app.command("train", epilog=EPILOG)
def train(
    source: Annotated[str, typer.Argument(help=_SPELLING, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for the prior; a training that was stopped goes on there.")],
    max_seconds: Annotated[
        float, typer.Option(help="How long to train in all; the learning rate falls to nothing over this time.")
    ] = 600.0,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE", help="Leave out images that this set, one to be audited, has a copy of. May be repeated.",
        ),
    ] = None,
    about: Annotated[
        str, typer.Option(help="What the images are, in words, for the prior's card. Default: the source.")
    ] = "",
    schedule: Annotated[str, typer.Option(help="How noise grows over the time steps: cosine or linear.")] = "cosine",
    widths: Annotated[
        str | None, typer.Option(help="Channels at full size, half size and so on; multiples of 16. Default: by size.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Images a step. Default: by their size.", min=1)] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate. Default: by the images' size.")] = None,
    flip: Annotated[bool, typer.Option(help="Show images mirrored as often as not.")] = True,
    seed: Annotated[int, typer.Option(help="Of the first weights, the batches and the noise.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda where there is one.")] = None,
) -> None:  # fmt: skip
    """Train a compact diffusion model on images that are in no audited set, within a given time.

    The folder then holds the network and its schedule as diffusers writes them, a card that says what it was trained
    on, and samples.png to look at.
    """
    from recollect.devices.precision import choose_device
    from recollect.diffusion import PriorRecipe, train_prior, without
    from recollect.sources import load

    check_device(device)
    check_folder(out)
    asked: dict[str, Any] = {
        "widths": read_widths(widths) if widths is not None else None,
        "rate": rate,
        "batch": batch,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    PriorRecipe(schedule=schedule, **given)  # tells what cannot be before images are loaded
    images = load(source)
    place = choose_device(device)
    recipe = PriorRecipe.for_size(images.shape[1], place, schedule=schedule, flip=flip, seed=seed, **given)
    for other in exclude or ():
        before, images = len(images), without(images, load(other))
        typer.echo(f"{before - len(images)} of {before} images left out: they are in {other}")
    train_prior(images, out, max_seconds=max_seconds, recipe=recipe, device=device, about=about, report=typer.echo)
    typer.echo(f"Use it as recollect audit ... --methods blind,ddnm --prior {out}")


def read_widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--widths takes whole numbers with commas between, not {text!r}.") from None
