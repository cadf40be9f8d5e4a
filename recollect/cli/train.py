"""recollect train."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.listings import SOURCE
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.images import Images
    from recollect.networks import FullyConnected, UNet
    from recollect.training import Training


class Network(StrEnum):
    fc = "fc"
    unet = "unet"


class Activation(StrEnum):
    lrelu = "lrelu"
    prelu = "prelu"
    softplus = "softplus"


LAYERS, WIDTH = 10, 1024
EPILOG = """\
Example: recollect train 'photos?count=40&size=32' --until 1e-8 --out runs/a

Exit codes: 0 the loss was reached, 1 training ended before (--max-seconds, --max-steps), 2 invalid usage, 130
interrupted. After an interruption the same command resumes the training.
"""


def train_command(
    source: Annotated[str, typer.Argument(help=SOURCE, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints. A stopped training is resumed there.")],
    network: Annotated[
        Network, typer.Option(help="fc: fully connected. unet: convolutional, for sides that are multiples of 8.")
    ] = Network.fc,
    activation: Annotated[Activation, typer.Option(help="Activation function between the layers.")] = Activation.lrelu,
    layers: Annotated[
        int | None, typer.Option(help=f"fc only: number of linear layers. Default: {LAYERS}.", min=2)
    ] = None,
    width: Annotated[
        int | None, typer.Option(help=f"fc only: width of the hidden layers. Default: {WIDTH}.", min=1)
    ] = None,
    last_width: Annotated[
        int | None, typer.Option(help="fc only: width of the last hidden layer; many images need a wide one.", min=1)
    ] = None,
    until: Annotated[float, typer.Option(help="The train loss (mean square error) to reach.")] = 1e-8,
    optimizer: Annotated[
        str | None,
        typer.Option(help="adam or muon. Default: adam for fc with no more images than its width, else muon."),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate. Default: by optimizer and width.")] = None,
    batch: Annotated[int | None, typer.Option(help="Images per step. Default: all, except for large sets.")] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop after this time, counted from the first start. The best checkpoint is kept, and the exit code "
            "is 1. Runs with a time limit are not reproducible."
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after so many steps. On a CPU the same seed then gives the same weights.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first weights and the order of batches.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Defaults to cuda if available.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON instead of text.")] = False,
) -> None:  # fmt: skip
    """Train an autoencoder on images until it fits them, with a checkpoint at every decade of the loss."""
    from recollect.cli.training_progress import interrupts_noted, training_report
    from recollect.sources import load
    from recollect.training import Recipe, train_to_loss

    check_device(device)
    check_folder(out)
    images = load(source)
    if not as_json:
        typer.echo(f"{len(images)} images of {'x'.join(map(str, images.shape))} from {images.name}")
    net = make_network(network, images, activation.value, layers, width, last_width, seed)
    recipe = Recipe.for_network(net, len(images), optimizer, seed)
    if rate is not None:
        recipe = replace(recipe, rate=rate)
    if batch is not None:
        recipe = replace(recipe, batch=batch)
    with training_report() as report, interrupts_noted() as stop:
        result = train_to_loss(
            net, images, until, decades_to(until), recipe=recipe, out=out, device=device, max_seconds=max_seconds,
            max_steps=max_steps, report=report, stop=stop,
        )  # fmt: skip
        if result.for_now:
            raise KeyboardInterrupt
    print_outcome(result, out, as_json)
    if not result.reached:
        raise typer.Exit(1)


def make_network(
    kind: Network, images: Images, activation: str, layers: int | None, width: int | None, last_width: int | None,
    seed: int,
) -> FullyConnected | UNet:  # fmt: skip
    """Build the network that was asked for."""
    from recollect.networks import FullyConnected, UNet

    if kind is Network.fc:
        return FullyConnected(
            images.shape, layers=layers or LAYERS, width=width or WIDTH, last_width=last_width, activation=activation,
            seed=seed,
        )  # fmt: skip
    if layers or width or last_width:
        raise InputError("--layers, --width and --last-width are for fc; a unet has the widths of the paper.")
    return UNet(channels=images.shape[0], activation=activation, seed=seed)


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
        typer.echo(json.dumps(outcome, indent=1))
        return
    typer.echo(result.why)
    for milestone in result.milestones:
        typer.echo(f"  {milestone.wanted:.0e}  {milestone.path}")
    if not result.reached:
        typer.echo(f"  {result.loss:.1e}  {out / BEST}, the best so far; a larger limit resumes from here")


def check_device(device: str | None) -> None:
    """Refuse a device that is unavailable before anything is read."""
    from recollect.devices import precision

    precision.check_device(device)


def check_folder(folder: Path) -> None:
    """Refuse a file where a folder is needed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; checkpoints need a folder of their own.")
