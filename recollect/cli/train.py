"""recollect train."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.data import _SPELLING
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.autoencoders import FullyConnected, UNet
    from recollect.images import Images
    from recollect.training import Training


class Network(StrEnum):
    fc = "fc"
    unet = "unet"


class Activation(StrEnum):
    lrelu = "lrelu"
    prelu = "prelu"
    softplus = "softplus"


EPILOG = (
    "Example: recollect train 'photos?count=40&size=32' --until 1e-8 --out runs/a · Exit codes: 0 the loss was "
    "reached, 1 it ended before (--max-seconds), 2 something was asked for wrongly, 130 interrupted (the same "
    "command goes on)."
)


def train_command(
    source: Annotated[str, typer.Argument(help=_SPELLING, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints; a training that was stopped goes on there.")],
    network: Annotated[
        Network, typer.Option(help="fc: fully connected; unet: convolutions, all through the latent; sides in eights.")
    ] = Network.fc,
    activation: Annotated[Activation, typer.Option(help="What stands between the layers.")] = Activation.lrelu,
    layers: Annotated[int, typer.Option(help="fc only: how many linear layers.", min=2)] = 10,
    width: Annotated[int, typer.Option(help="fc only: values in each hidden layer.", min=1)] = 1024,
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
        float | None, typer.Option(help="Stop after this time; what was reached is kept, and the exit code is 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first weights and the order of batches.", min=0)] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda where there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON instead of words.")] = False,
) -> None:  # fmt: skip
    """Train an autoencoder on images until it fits them, with a checkpoint at every decade of the loss."""
    from recollect.cli.progress import training_report
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
    with training_report() as report:
        result = train_to_loss(
            net, images, until, recipe=recipe, out=out, device=device, max_seconds=max_seconds, report=report
        )  # fmt: skip
    tell(result, as_json)
    if not result.reached:
        raise typer.Exit(1)


def make_network(
    kind: Network, images: Images, activation: str, layers: int, width: int, last_width: int | None, seed: int
) -> FullyConnected | UNet:
    from recollect.autoencoders import FullyConnected, UNet

    if kind is Network.fc:
        return FullyConnected(
            images.shape, layers=layers, width=width, last_width=last_width, activation=activation, seed=seed
        )
    return UNet(channels=images.shape[0], activation=activation, seed=seed)


def tell(result: Training, as_json: bool) -> None:
    if as_json:
        reached = [{"wanted": m.wanted, "loss": m.loss, "path": str(m.path)} for m in result.milestones]
        outcome = {"loss": result.loss, "reached": result.reached, "why": result.why, "checkpoints": reached}
        typer.echo(json.dumps(outcome, indent=1))
        return
    typer.echo(result.why)
    for milestone in result.milestones:
        typer.echo(f"  {milestone.wanted:.0e}  {milestone.path}")


def check_device(device: str | None) -> None:
    """Refuse a device that is not there before anything is read."""
    from recollect import precision

    precision.check_device(device)


def check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; checkpoints need a folder of their own.")
