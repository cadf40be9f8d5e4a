"""A miniature of 25,000 images in FC-20: crops of Tiny ImageNet, twice as many as an image has values.

Crops, not shrunk images, have the principal components of the whole images, in proportion. Prints the loss that no
network of a width can go below, the loss reached, that of unseen images, and what is recovered. A quarter of
the full width, for a GPU: --side 32 --count 6250 --width 1280 --last-width 6656 --device cuda.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images, load, train_to_loss
from recollect.auditing.model_facts import train_loss
from recollect.degradation import mask
from recollect.methods import Blind, KnownMask
from recollect.scoring import Score
from recollect.training import Recipe
from recollect.training.recipe import MANY_IMAGES

JUDGED = 60


def crops(archive: str, side: int, count: int) -> tuple[Tensor, Tensor]:
    """Images to train on, and as many others."""
    pixels = load(f"tiny-imagenet:{archive}?count={2 * count}&seed=42").pixels
    cut = slice(16, 16 + side)
    mixed = pixels[torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0)), :, cut, cut].contiguous()
    return mixed[:count], mixed[count:]


def least_loss(images: Tensor, width: int) -> float:
    """Compute the loss that no network of this last width can go below.

    Its output is an affine function of the last hidden layer, so as many principal components are the best it can do.
    """
    x = images.flatten(1).double()
    return float(torch.linalg.svdvals(x - x.mean(0))[width:].square().sum() / x.numel())


def recovered(network: nn.Module, images: Tensor, name: str, gamma: float) -> str:
    _, channels, height, width = images.shape
    truth = mask(name, (channels, height, width)).expand(images)
    y = truth.apply(images)
    recoveries = Blind(gamma=gamma, limit=15)(network, y), KnownMask(gamma=gamma)(network, y, truth)
    return "/".join(f"{100 * Score.of(recovery.estimate, images).approximate.value:.0f}" for recovery in recoveries)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", help="tiny-imagenet-200.zip")
    parser.add_argument("--side", type=int, default=8, help="of a crop, 48 at most")
    parser.add_argument("--count", type=int, default=390, help="of crops; a batch is half of them")
    parser.add_argument("--width", type=int, default=80)
    parser.add_argument("--last-width", type=int, default=416)
    parser.add_argument("--optimizer", default="muon")
    parser.add_argument("--rate", type=float, default=MANY_IMAGES.muon_rate)
    parser.add_argument("--batch", type=int, help="half of the images unless given")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument(
        "--decay", type=float, default=MANY_IMAGES.muon_weight_decay, help="of the weights, by the rate"
    )
    parser.add_argument(
        "--newton-schulz", type=int, default=MANY_IMAGES.newton_schulz_steps, help="steps, for all matrices"
    )
    parser.add_argument("--cosine", action="store_true", help="the rate falls along a cosine, not a line")
    parser.add_argument("--gamma", type=float, nargs="+", default=[1.0], help="of recovery")
    parser.add_argument("--seed", type=int, default=42, help="of the batches")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(arguments)
    train, control = crops(given.archive, given.side, given.count)
    network = FullyConnected((3, given.side, given.side), layers=20, width=given.width, last_width=given.last_width)
    recipe = Recipe(
        given.optimizer, rate=given.rate, batch=given.batch or given.count // 2, anneal_steps=given.steps,
        anneal_shape="cosine" if given.cosine else "linear", solve_below=None, weight_decay=given.decay,
        newton_schulz_steps=given.newton_schulz, seed=given.seed,
    )  # fmt: skip
    done = train_to_loss(network, Images.of(train), 1e-6, (), recipe=recipe, max_steps=given.steps, device=given.device)
    least = least_loss(train, given.last_width)
    print(f"width {given.width} and {given.last_width}: least possible loss {least:.1e}, {done.why}")
    print(f"loss {done.loss:.1e}, of others {train_loss(network, Images.of(control)):.1e}")
    for gamma in given.gamma:
        for name in ("block", "half", "stripes"):
            rates = (recovered(network, images[:JUDGED], name, gamma) for images in (train, control))
            print(f"gamma {gamma:g}, {name}: blind/known % {next(rates)}, of others {next(rates)}")


if __name__ == "__main__":
    main()
