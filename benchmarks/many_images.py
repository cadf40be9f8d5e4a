"""A miniature of 25,000 images in FC-20: 8x8 crops of Tiny ImageNet, twice as many as an image has values.

Crops, not shrunk images, have the principal components of the whole images, in proportion. Prints the loss that no
network of a width can go below, the loss reached, that of images not trained on, and what is recovered.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images, load, train_to_loss
from recollect.auditing.facts import train_loss
from recollect.degradation import mask
from recollect.recovery import Blind, KnownMask
from recollect.scoring import Score
from recollect.training import Recipe, optimizers
from recollect.training.recipe import MANY

SIDE, COUNT, JUDGED = 8, 390, 60


def crops(archive: str) -> tuple[Tensor, Tensor]:
    """Images to train on, and as many others."""
    pixels = load(f"tiny-imagenet:{archive}?count={2 * COUNT}&seed=42").pixels[..., 16 : 16 + SIDE, 16 : 16 + SIDE]
    mixed = pixels[torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))].contiguous()
    return mixed[:COUNT], mixed[COUNT:]


def floor_of(images: Tensor, width: int) -> float:
    """What is left after as many principal components: the output is an affine function of the last hidden layer."""
    x = images.flatten(1).double()
    return float(torch.linalg.svdvals(x - x.mean(0))[width:].square().sum() / x.numel())


def recovered(network: nn.Module, images: Tensor, name: str) -> str:
    truth = mask(name, (3, SIDE, SIDE)).expand(images)
    y = truth.apply(images)
    found = Blind(gamma=1, limit=15)(network, y), KnownMask(gamma=1)(network, y, truth)
    return "/".join(f"{100 * Score.of(f.estimate, images).approximate.value:.0f}" for f in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", help="tiny-imagenet-200.zip")
    parser.add_argument("--width", type=int, default=80)
    parser.add_argument("--last-width", type=int, default=416)
    parser.add_argument("--optimizer", default="muon")
    parser.add_argument("--rate", type=float, default=MANY.muon_rate)
    parser.add_argument("--batch", type=int, default=COUNT // 2)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--decay", type=float, default=MANY.muon_decay, help="of the weights, by the rate")
    parser.add_argument("--cosine", action="store_true", help="the rate falls along a cosine, not a line")
    given = parser.parse_args()
    optimizers.STEPS = optimizers.WIDE_STEPS  # as at full size, where all matrices are wide
    train, control = crops(given.archive)
    network = FullyConnected((3, SIDE, SIDE), layers=20, width=given.width, last_width=given.last_width)
    recipe = Recipe(
        given.optimizer, rate=given.rate, batch=given.batch, fall=given.steps, straight=not given.cosine,
        finish_from=None, decay=given.decay,
    )  # fmt: skip
    done = train_to_loss(network, Images.of(train), 1e-6, (), recipe=recipe, max_steps=given.steps, device="cpu")
    print(f"width {given.width} and {given.last_width}: floor {floor_of(train, given.last_width):.1e}, {done.why}")
    print(f"loss {done.loss:.1e}, of others {train_loss(network, Images.of(control)):.1e}")
    for name in ("block", "half", "stripes"):
        rates = (recovered(network, images[:JUDGED], name) for images in (train, control))
        print(f"{name}: blind/known % {next(rates)}, of others {next(rates)}")


if __name__ == "__main__":
    main()
