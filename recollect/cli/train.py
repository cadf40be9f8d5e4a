"""recollect train."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.early_checks import check_choice, check_folder, check_network, check_source
from recollect.cli.listings import SOURCE
from recollect.cli.printing import echo
from recollect.counting import counted
from recollect.devices.device_names import check_device_name
from recollect.errors import InputError, check_positive

if TYPE_CHECKING:
    from recollect.images import Images
    from recollect.networks import Network
    from recollect.training import Training


class Activation(StrEnum):
    lrelu = "lrelu"
    prelu = "prelu"
    softplus = "softplus"


OPTIMIZERS = ("adam", "muon")
EPILOG = """\
Example: recollect train 'photos?count=40&size=32' --until 1e-8 --out runs/a

Exit codes: 0 the loss was reached; 1 it was not, within --max-seconds or --max-steps; 2 invalid usage; 130 or 143
interrupted. After an interruption the same command resumes the training.
"""


def train_command(
    source: Annotated[str, typer.Argument(help=SOURCE, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints. A stopped training is resumed there.")],
    network: Annotated[
        str, typer.Option(help="The kind of network. {networks}", metavar="NAME")
    ] = "fc",
    activation: Annotated[
        Activation | None,
        typer.Option(metavar="lrelu|prelu|softplus", help="Activation function between the layers. Default: lrelu."),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="fc only: number of linear layers. Default: 10.", min=2, metavar="N")
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="fc only: width of the hidden layers. Default: 1024.", min=1, metavar="N")
    ] = None,
    last_width: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="fc only: width of the last hidden layer. Many images need a wide one."),
    ] = None,
    skip: Annotated[
        bool, typer.Option("--skip", help="unet only: add skip connections, which let details pass beside the latent.")
    ] = False,
    until: Annotated[float, typer.Option(help="The train loss (mean square error) to reach.")] = 1e-8,
    optimizer: Annotated[
        str | None,
        typer.Option(metavar="adam|muon", help="Default: adam for fc with no more images than its width, else muon."),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate. Default: by optimizer and width.")] = None,
    batch: Annotated[int | None, typer.Option(help="Images per step. Default: all, except for large sets.")] = None,
    solve_below: Annotated[
        float | None,
        typer.Option(
            help="fc only: below this loss, solve the last layer by least squares and train no further. Default: never."
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop after this time, counted from the first start. The best checkpoint is kept, and the exit code "
            "is 1. Runs with a time limit are not reproducible."
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps. The same seed then gives the same weights on a CPU.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the first weights and the order of batches.", min=0, metavar="N")
    ] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to cuda if available.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON instead of text.")] = False,
) -> None:  # fmt: skip
    """Train an autoencoder on images until it fits them, with a checkpoint at every decade of the loss."""
    check_source(source)
    check_folder(out)
    check_device_name(device)
    check_network(network)
    check_choice("optimizer", optimizer, OPTIMIZERS)
    for name, value in (("--until", until), ("--rate", rate), ("--solve-below", solve_below)):
        check_positive(name, value)
    check_counts(batch, max_seconds, max_steps)

    from recollect.cli.training_progress import interrupts_noted, training_report
    from recollect.sources import load
    from recollect.training import Recipe, train_to_loss

    check_device(device)
    images = load(source)
    if not as_json:
        echo(f"{counted(len(images), 'image')} of {'x'.join(map(str, images.shape))} from {images.name}")
    net = make_network(
        network,
        images,
        activation=activation and activation.value,
        layers=layers,
        width=width,
        last_width=last_width,
        skip=skip or None,
        seed=seed,
    )
    recipe = Recipe.for_network(net, len(images), optimizer, seed)
    chosen: dict[str, Any] = {"rate": rate, "batch": batch, "solve_below": solve_below}
    recipe = replace(recipe, **{name: value for name, value in chosen.items() if value is not None})
    with training_report() as report, interrupts_noted() as stop:
        result = train_to_loss(
            net, images, until, decades_to(until), recipe=recipe, out=out, device=device, max_seconds=max_seconds,
            max_steps=max_steps, report=report, stop=stop,
        )  # fmt: skip
        if result.suspended:
            stop.raise_noted()
    print_outcome(result, out, as_json)
    if not result.reached:
        raise typer.Exit(1)


def check_counts(batch: int | None, max_seconds: float | None, max_steps: int | None) -> None:
    """Refuse a batch without images, and a limit before the start."""
    if batch is not None and batch < 1:
        raise InputError(f"A batch has at least one image, got {batch}.")
    for name, limit in (("--max-seconds", max_seconds), ("--max-steps", max_steps)):
        if limit is not None and not limit >= 0:
            raise InputError(f"A limit cannot be negative, got {name} {limit:g}.")


def make_network(kind: str, images: Images, **settings: Any) -> Network:
    """Build the network that was asked for; settings that were left out keep their defaults."""
    from recollect.networks import NETWORKS

    return NETWORKS[kind].for_images(images.shape, **{k: value for k, value in settings.items() if value is not None})


def decades_to(until: float) -> list[float]:
    """List the losses at which checkpoints are kept: 1e-4, 1e-5 and so on, down to the one to reach."""
    first = 4
    last = max(first, math.floor(-math.log10(until) + 1e-9)) if 0 < until < 1 else first
    return [float(f"1e-{k}") for k in range(first, last + 1)]


def print_outcome(result: Training, out: Path, as_json: bool) -> None:
    """Print what was reached, for people or for machines."""
    from recollect.training import BEST

    if as_json:
        reached = [{"wanted": m.wanted, "loss": m.loss, "path": str(m.path)} for m in result.milestones]
        outcome = {"loss": result.loss, "reached": result.reached, "why": result.why, "checkpoints": reached}
        outcome |= {"best": None if result.reached else str(out / BEST), "log": result.log}
        echo(json.dumps(outcome, indent=1))
        return
    echo(result.why)
    for milestone in result.milestones:
        echo(f"  {milestone.wanted:.0e}  {milestone.path}")
    if not result.reached:
        echo(f"  {result.loss:.1e}  {out / BEST}, the best so far; a larger limit resumes from here")


def check_device(device: str | None) -> None:
    """Refuse a device that is unavailable before anything is read."""
    from recollect.devices import precision

    precision.check_device(device)
