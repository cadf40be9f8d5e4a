"""recollect train."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.data import _SPELLING
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
EPILOG = (
    "Example: recollect train 'photos?count=40&size=32' --until 1e-8 --out runs/a · Exit codes: 0 the loss was "
    "reached, 1 it ended before (--max-seconds, --max-steps), 2 something was asked for wrongly, 130 interrupted (the "
    "same command goes on)."
)


def train_command(
    source: Annotated[str, typer.Argument(help=_SPELLING, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints; a training that was stopped goes on there.")],
    network: Annotated[
        Network, typer.Option(help="fc: fully connected; unet: convolutions, all through the latent; sides in eights.")
    ] = Network.fc,
    activation: Annotated[Activation, typer.Option(help="What stands between the layers.")] = Activation.lrelu,
    layers: Annotated[
        int | None, typer.Option(help=f"fc only: how many linear layers. Default: {LAYERS}.", min=2)
    ] = None,
    width: Annotated[
        int | None, typer.Option(help=f"fc only: values in each hidden layer. Default: {WIDTH}.", min=1)
    ] = None,
    last_width: Annotated[
        int | None, typer.Option(help="fc only: values in the last hidden layer; wide for many images.", min=1)
    ] = None,
    until: Annotated[float, typer.Option(help="The train loss (mean square error) to reach.")] = 1e-8,
    optimizer: Annotated[
        str | None,
        typer.Option(help="adam or muon. Default: adam for fc with no more images than its width, else muon."),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate. Default: by optimizer and width.")] = None,
    batch: Annotated[int | None, typer.Option(help="Images a step. Default: all, but for large sets.")] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop after this time, counted from the first start; what was reached is kept, and the exit code is "
            "1. A rate that falls does so in time for it, so two runs under such a limit differ."
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after so many steps; on a CPU the same seed then gives the same bits.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first weights and the order of batches.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda where there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON instead of words.")] = False,
) -> None:  # fmt: skip
    """Train an autoencoder on images until it fits them, with a checkpoint at every decade of the loss."""
    from recollect.cli.training_progress import heeding_interrupts, training_report
    from recollect.sources import load
    from recollect.training import Recipe, train_to_loss

    check_device(device)
    check_folder(out)
    images = load(source)
    if not as_json:
        typer.echo(f"{len(images)} images of {'x'.join(map(str, images.shape))} from {images.name}")
    net = make_network(network, images, activation.value, layers, width, last_width, seed)
    recipe = Recipe.for_network(net, len(images), optimizer, seed)
    recipe = recipe if rate is None else replace(recipe, rate=rate)
    recipe = recipe if batch is None else replace(recipe, batch=batch)
    with training_report() as report, heeding_interrupts() as stop:
        result = train_to_loss(
            net, images, until, decades_to(until), recipe=recipe, out=out, device=device, max_seconds=max_seconds,
            max_steps=max_steps, report=report, stop=stop,
        )  # fmt: skip
        if result.suspended:
            raise KeyboardInterrupt
    tell(result, out, as_json)
    if not result.reached:
        raise typer.Exit(1)


def make_network(
    kind: Network, images: Images, activation: str, layers: int | None, width: int | None, last_width: int | None,
    seed: int,
) -> FullyConnected | UNet:  # fmt: skip
    from recollect.networks import FullyConnected, UNet

    if kind is Network.fc:
        return FullyConnected(
            images.shape, layers=layers or LAYERS, width=width or WIDTH, last_width=last_width, activation=activation,
            seed=seed,
        )  # fmt: skip
    if layers or width or last_width:
        raise InputError("--layers, --width and --last-width are of fc; a unet has the widths of the paper's.")
    return UNet(channels=images.shape[0], activation=activation, seed=seed)


def decades_to(until: float) -> list[float]:
    """1e-4, 1e-5 and so on, as far as the loss that is to be reached."""
    first = 4
    last = max(first, math.floor(-math.log10(until) + 1e-9)) if 0 < until < 1 else first
    return [float(f"1e-{k}") for k in range(first, last + 1)]


def tell(result: Training, out: Path, as_json: bool) -> None:
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
        typer.echo(f"  {result.loss:.1e}  {out / BEST}, the best there was; a larger limit goes on from here")


def check_device(device: str | None) -> None:
    """Refuse a device that is not there before anything is read."""
    from recollect.devices import precision

    precision.check_device(device)


def check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; checkpoints need a folder of their own.")
