"""How to anneal the learning rate, and over how many steps to average the weights, on a small U-Net.

    python benchmarks/annealing.py 'svhn:DATA/svhn?count=50&seed=42' --count 16 --power 2

Prints, along one fall of the rate and somewhat beyond, the loss of the last step, and the loss of weights averaged over
each of several numbers of steps and over as many as the trainer would take.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from recollect import UNet, load
from recollect.training import Recipe
from recollect.training.monitor import Limits
from recollect.training.rate_schedule import Annealing, average_horizon
from recollect.training.stepper import Stepper

BEYOND = 1.06  # steps taken, in lengths of the fall


class Average:
    """A running average of the weights, over a number of steps or over as many as the trainer would."""

    def __init__(self, weights: Sequence[Tensor], reach: int | None) -> None:
        self.reach, self.values = reach, [w.detach().clone() for w in weights]
        self.name = f"over {reach}" if reach else "the trainer's"

    @torch.no_grad()
    def add(self, weights: Sequence[Tensor], as_the_trainer: int, steps: int) -> None:
        torch._foreach_lerp_(self.values, list(weights), 1 / min(self.reach or as_the_trainer, steps))


def follow(stepper: Stepper, annealing: Annealing, averages: Sequence[Average], rows: int) -> Iterator[list[float]]:
    """Train while the rate is annealed; yield the step, the rate, the loss of a step and those of the averages."""
    assert annealing.length
    assert stepper.recipe.average_steps
    total = int(annealing.length * BEYOND)
    for steps in range(1, total + 1):
        stepper.set_rate(stepper.recipe.rate * annealing.factor(steps - 1, 0.0, Limits()))
        loss = stepper.run(1)
        reach = average_horizon(stepper.recipe.average_steps, steps, annealing.steps_left(steps, 0.0, Limits()))
        for average in averages:
            average.add(stepper.weights, reach, steps)
        if steps % max(1, annealing.length // rows) == 0 or steps == total:
            yield [steps, stepper.rate, loss, *(_loss(stepper, average) for average in averages)]


def _loss(stepper: Stepper, average: Average) -> float:
    with stepper.using(average.values):
        return stepper.measure(averaged=False)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", help="any spelling that recollect data show takes")
    parser.add_argument("--count", type=int, help="only the first ones")
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--activation", default="softplus", choices=["lrelu", "prelu", "softplus"])
    parser.add_argument("--optimizer", default="muon", choices=["adam", "muon"])
    parser.add_argument("--rate", type=float, help="at first, if not the recipe's")
    parser.add_argument("--steps", type=int, default=4000, help="that the rate falls over")
    parser.add_argument("--straight", action="store_true", help="along a line, not along a cosine")
    parser.add_argument("--power", type=float, default=1.0, help="of that line or cosine")
    parser.add_argument("--average", type=int, nargs="+", default=[10, 25, 100, 400], help="steps")
    parser.add_argument("--rows", type=int, default=20, help="that are printed")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(arguments)
    torch.set_num_threads(given.threads)
    images = load(given.images).pixels[: given.count]
    network = UNet(channels=images.shape[1], widths=given.widths, activation=given.activation)
    recipe = Recipe.for_network(network, len(images), given.optimizer)
    stepper = Stepper(network, images, replace(recipe, rate=given.rate or recipe.rate))
    averages = [Average(stepper.weights, reach) for reach in (*given.average, None)]
    print("".join(f"{name:>15}" for name in ("steps", "rate", "a step's", *(a.name for a in averages))))
    annealing = Annealing(given.steps, shape="linear" if given.straight else "cosine", power=given.power)
    for steps, *values in follow(stepper, annealing, averages, given.rows):
        print(f"{steps:15}" + "".join(f"{value:15.2e}" for value in values), flush=True)


if __name__ == "__main__":
    main()
