"""Compare Recollect's Muon with `torch.optim.Muon`: steps to a train loss, and CPU time for a step.

    python benchmarks/muon.py

Both train the same FC-6 on the same photographs at the same rate and without weight decay. Vectors get Adam in both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from recollect import FullyConnected, load
from recollect.training import Recipe
from recollect.training.optimizers import Muon, adam_options
from recollect.training.stepper import Stepper

VECTOR_RATIO = 0.02  # of Adam's rate for vectors to Muon's


class TorchMuon(Muon):
    """PyTorch's Muon for matrices behind the interface of Recollect's."""

    def __init__(self, parameters: Sequence[Tensor], rate: float) -> None:
        matrices = [p for p in parameters if p.ndim >= 2]
        vectors = [p for p in parameters if p.ndim < 2]
        self.rate = torch.tensor(rate)
        self.matrices = torch.optim.Muon(matrices, lr=rate, weight_decay=0.0)
        self.vectors = torch.optim.Adam(
            vectors, lr=rate * VECTOR_RATIO, betas=(0.9, 0.99), **adam_options(self.rate.device)
        )

    def step(self) -> None:
        self.matrices.step()
        self.vectors.step()


def train(stepper: Stepper, loss: float, most: int, window: int = 25) -> tuple[int, float, float]:
    """Train in windows; return the steps, the train loss of the average, and the CPU seconds for a step."""
    seconds, reached = 0.0, float("inf")
    while stepper.steps < most and reached > loss:
        before = time.process_time()
        stepper.run(window)
        seconds += time.process_time() - before
        reached = stepper.measure(averaged=True)
    return stepper.steps, reached, seconds / stepper.steps


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default="photos?count=20&size=16&seed=42")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--loss", type=float, default=1e-6)
    parser.add_argument("--steps", type=int, default=4000, help="at most")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    images = load(options.images)
    for name in ("recollect", "torch"):
        network = FullyConnected(images.shape, layers=options.layers, width=options.width)
        stepper = Stepper(network, images.pixels, Recipe("muon", rate=options.rate, average_steps=25))
        if name == "torch":
            stepper.optimizer = TorchMuon(stepper.weights, options.rate)
        steps, loss, seconds = train(stepper, options.loss, options.steps)
        print(f"{name}: loss {loss:.1e} after {steps} steps of {1000 * seconds:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
