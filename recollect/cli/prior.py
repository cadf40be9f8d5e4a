"""recollect prior: train a diffusion model of your own for the method ddnm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli.listings import SOURCE
from recollect.cli.train import check_device, check_folder
from recollect.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Diffusion models as generic priors, for the method ddnm.")

EPILOG = (
    "Example: recollect prior train folder:photos --max-seconds 600 --out my-prior, and then recollect audit ... "
    "--methods blind,ddnm --prior my-prior\n\nThe same command resumes a training that was stopped."
)


@app.callback()
def group() -> None:
    """A callback keeps `train` a command of its own while it is the only one."""


@app.command("train", epilog=EPILOG)
def train(
    source: Annotated[str, typer.Argument(help=SOURCE, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for the prior. A stopped training is resumed there.")],
    max_seconds: Annotated[
        float, typer.Option(help="How long to train in all; the learning rate falls to zero over this time.")
    ] = 600.0,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE", help="Leave out images of this set, which is to be audited. May be repeated.",
        ),
    ] = None,
    about: Annotated[
        str, typer.Option(help="A description of the images, for the prior's card. Default: the source.")
    ] = "",
    schedule: Annotated[str, typer.Option(help="How noise grows over the time steps: cosine or linear.")] = "cosine",
    widths: Annotated[
        str | None, typer.Option(help="Channels at full size, half size and so on; multiples of 16. Default: by size.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Images per step. Default: by their size.", min=1)] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate. Default: by the images' size.")] = None,
    flip: Annotated[bool, typer.Option(help="Mirror half of the images at random.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of the first weights, the batches and the noise.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to cuda if available.")] = None,
) -> None:  # fmt: skip
    """Train a compact diffusion model on images that are in no audited set, within a given time.

    The folder then holds the network and its schedule in diffusers' layout, a card that says what it was trained on,
    and samples.png to look at.
    """
    from recollect.devices.precision import choose_device
    from recollect.diffusion import PriorRecipe, train_prior, without
    from recollect.sources import load

    check_device(device)
    check_folder(out)
    options: dict[str, Any] = {"widths": read_widths(widths), "rate": rate, "batch": batch}
    given = {name: value for name, value in options.items() if value is not None}
    PriorRecipe(schedule=schedule, **given)  # refuses mistakes before images are loaded
    images = load(source)
    recipe = PriorRecipe.for_size(
        images.shape[1], choose_device(device), schedule=schedule, flip=flip, seed=seed, **given
    )
    for other in exclude or ():
        before, images = len(images), without(images, load(other))
        typer.echo(f"{before - len(images)} of {before} images left out: they are in {other}")
    train_prior(images, out, max_seconds=max_seconds, recipe=recipe, device=device, about=about, report=typer.echo)
    typer.echo(f"Use it as recollect audit ... --methods blind,ddnm --prior {out}")


def read_widths(text: str | None) -> tuple[int, ...] | None:
    """Read whole numbers with commas between."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--widths takes whole numbers with commas between, not {text!r}.") from None
