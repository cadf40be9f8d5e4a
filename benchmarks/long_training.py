"""What can be recovered from a network the longer Muon trains it at one rate, with and without weight decay.

    python benchmarks/long_training.py --decay 0
    python benchmarks/long_training.py --decay 0.15

Prints, after each number of steps: the train loss of the averaged weights, the smallest and largest spectral norm of a
layer, and how many images are recovered approximately with the mask known, under each mask.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from recollect import FullyConnected, Images, KnownMask, load, mask, observe
from recollect.scoring import Score
from recollect.training import Recipe
from recollect.training.stepper import Stepper

MASKS = ("block", "half", "dust")


def spectral_norms(network: nn.Module) -> list[float]:
    layers = [m for m in network.modules() if isinstance(m, nn.Linear)]
    return [torch.linalg.matrix_norm(layer.weight.detach(), 2).item() for layer in layers]


def recovered(network: nn.Module, images: Images, gamma: float) -> list[int]:
    """Count the images that are recovered approximately, under each mask."""
    counts = []
    for name in MASKS:
        truth = mask(name, images.shape)
        recovery = KnownMask(gamma=gamma)(network, observe(images, truth).y, truth)
        counts.append(Score.of(recovery.estimate, images.pixels).approximate.count)
    return counts


def row(stepper: Stepper, images: Images, network: nn.Module, gamma: float) -> list[str]:
    loss = stepper.measure(averaged=True)
    with stepper.using(stepper.average):
        norms, counts = spectral_norms(network), recovered(network, images, gamma)
    return [f"{loss:.1e}", f"{min(norms):.1f} to {max(norms):.1f}", *map(str, counts)]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default="photos?count=150&size=16&seed=42")
    parser.add_argument("--activation", default="prelu", choices=["lrelu", "prelu"])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--decay", type=float, default=0.0, help="of Muon's recipe")
    parser.add_argument("--gamma", type=float, default=0.5)
    parser.add_argument("--steps", type=int, nargs="+", default=[700, 1000, 1500, 2000, 3000])
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(arguments)
    torch.set_num_threads(given.threads)
    images = load(given.images)
    network = FullyConnected(images.shape, layers=given.layers, width=given.width, activation=given.activation)
    recipe = replace(Recipe.for_network(network, len(images), "muon"), weight_decay=given.decay)
    stepper = Stepper(network, images.pixels, recipe)
    print("| steps | train loss | spectral norms |", " | ".join(MASKS), "|")
    done = 0
    for steps in sorted(given.steps):
        stepper.run(steps - done)
        done = steps
        print("|", " | ".join([str(steps), *row(stepper, images, network, given.gamma)]), "|", flush=True)


if __name__ == "__main__":
    main()
