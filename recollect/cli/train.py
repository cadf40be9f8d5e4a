"""recollect train."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.data import _SPELLING


class Network(StrEnum):
    fc = "fc"
    unet = "unet"


class Activation(StrEnum):
    lrelu = "lrelu"
    prelu = "prelu"
    softplus = "softplus"


def train_command(
    source: Annotated[str, typer.Argument(help=_SPELLING, metavar="SOURCE")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints; a run that was stopped goes on from there.")],
    network: Annotated[Network, typer.Option(help="Fully connected, or a U-Net without skips.")] = Network.fc,
    activation: Annotated[Activation, typer.Option()] = Activation.lrelu,
    layers: Annotated[int, typer.Option(help="Linear layers of a fully connected network.")] = 10,
    width: Annotated[int, typer.Option(help="Its hidden width.")] = 1024,
    until: Annotated[float, typer.Option(help="Train loss (MSE) to reach.")] = 1e-8,
    optimizer: Annotated[str | None, typer.Option(help="adam or muon. Default: adam for fc, muon for unet.")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate. Default: by optimizer.")] = None,
    batch: Annotated[int | None, typer.Option(help="Images a step. Default: all.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after this time, keeping what was reached.")] = None,
    seed: Annotated[int, typer.Option()] = 42,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Default: cuda where there is one.")] = None,
) -> None:
    """Train an autoencoder to a loss, with a checkpoint at every decade on the way."""
    from recollect.autoencoders import FullyConnected, UNet
    from recollect.sources import load
    from recollect.training import Recipe, train_to_loss

    images = load(source)
    typer.echo(f"{len(images)} images of {'x'.join(map(str, images.shape))} from {images.name}")
    if network is Network.fc:
        net: FullyConnected | UNet = FullyConnected(
            images.shape, layers=layers, width=width, activation=activation.value, seed=seed
        )
    else:
        net = UNet(channels=images.shape[0], activation=activation.value, seed=seed)
    default = Recipe.for_network(net)
    recipe = replace(default, batch=batch, seed=seed)
    if optimizer:
        recipe = replace(recipe, optimizer=optimizer, rate=Recipe.RATES.get(optimizer, default.rate))
    if rate:
        recipe = replace(recipe, rate=rate)
    result = train_to_loss(net, images, until, recipe=recipe, folder=out, device=device, max_seconds=max_seconds)
    typer.echo(result.why)
    for milestone in result.milestones:
        typer.echo(f"  {milestone.wanted:.0e}  {milestone.path}")
    if not result.reached:
        raise typer.Exit(1)
