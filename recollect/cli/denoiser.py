"""recollect denoiser: train a diffusion model, to audit it or to use it as a generic prior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli.early_checks import check_choice, check_denoising_network, check_folder, check_source
from recollect.cli.listings import SOURCE, ListingCommand
from recollect.cli.printing import echo
from recollect.cli.train import check_device
from recollect.devices.device_names import check_device_name
from recollect.errors import InputError, check_positive

SCHEDULES = ("edm", "cosine")
app = typer.Typer(
    no_args_is_help=True, help="Train a diffusion model, to audit it or to use it as the generic prior of ddnm."
)

EPILOG = (
    "Example: recollect denoiser train folder:photos --max-seconds 600 --out my-denoiser, and then recollect audit "
    "my-denoiser --train folder:photos ..., or recollect audit ... --methods blind,ddnm --prior my-denoiser\n\n"
    "The same command resumes a training that was stopped."
)


@app.callback()
def group() -> None:
    """Keep `train` a command of its own while it is the only one."""


@app.command("train", cls=ListingCommand, epilog=EPILOG)
def train(
    source: Annotated[str, typer.Argument(help=SOURCE, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for the denoiser. A stopped training is resumed there.")],
    max_seconds: Annotated[
        float | None,
        typer.Option(help="How long to train in all. The learning rate falls to zero over this time. Default: 600, "
                     "unless --max-steps is given."),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(help="How many steps to train in all. On a CPU the same seed then gives the same weights.", min=1),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Leave out images of this set. May be repeated. A prior must not be "
                     "trained on images that are audited."),
    ] = None,
    about: Annotated[
        str, typer.Option(help="A description of the images, for the denoiser's card. Default: the source.")
    ] = "",
    network: Annotated[
        str, typer.Option(help="The kind of network. {denoising_networks}", metavar="NAME")
    ] = "unet",
    schedule: Annotated[
        str, typer.Option(metavar="edm|cosine", help="Distribution of noise levels in training.")
    ] = "edm",
    widths: Annotated[
        str | None,
        typer.Option(help="unet only: channels at full size, half size and so on, in sixteens. Default: by size."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Images per step. Default: by their size.", min=1)] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate. Default: by the device.")] = None,
    flip: Annotated[bool, typer.Option(help="Mirror half of the images at random, which improves a prior.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the first weights, the batches and the noise.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to cuda if available.")] = None,
) -> None:  # fmt: skip
    """Train a diffusion model on images, for a given time or number of steps.

    The folder then holds the network, a card that describes the training images, and samples.png.
    """
    for images_of in (source, *(exclude or ())):
        check_source(images_of)
    check_denoising_network(network)
    check_device_name(device)
    check_folder(out)
    check_choice("schedule", schedule, SCHEDULES)
    check_positive("--rate", rate)
    options: dict[str, Any] = {"settings": read_widths(widths), "rate": rate, "batch": batch}

    from recollect.devices.precision import choose_device
    from recollect.diffusion import DenoiserRecipe, train_denoiser, without
    from recollect.sources import load

    check_device(device)
    given = {name: value for name, value in options.items() if value is not None}
    given |= {"network": network, "schedule": schedule, "flip": flip, "seed": seed}
    DenoiserRecipe(**given)  # refuses mistakes before images are loaded
    images = load(source)
    for other in exclude or ():
        before, images = len(images), without(images, load(other))
        echo(f"{before - len(images)} of {before} images left out: they are in {other}")
    recipe = DenoiserRecipe.for_size(max(images.image_shape[1:]), choose_device(device), **given)
    if max_seconds is None and max_steps is None:
        max_seconds = 600.0
    train_denoiser(
        images, out, max_seconds=max_seconds, max_steps=max_steps, recipe=recipe, device=device, about=about,
        report=echo,
    )  # fmt: skip
    echo(f"Audit it as recollect audit {out} --train {source}, or use it as a prior: --prior {out}")


def read_widths(text: str | None) -> dict[str, Any] | None:
    """Read whole numbers with commas between."""
    if text is None:
        return None
    try:
        return {"widths": tuple(int(part) for part in text.split(","))}
    except ValueError:
        raise InputError(f"--widths takes whole numbers with commas between, not {text!r}.") from None
