"""What canaries find: a network that memorizes, and networks that DP-SGD trains with an accounted epsilon.

    python benchmarks/canaries.py --max-seconds 1200 --out results/canaries.json
    python benchmarks/canaries.py --tables results/canaries.json

The first network is that of recollect demo: fully connected, fitted to photographs and canaries. The
others are trained by opacus with DP-SGD, each with canaries, coins and noise of its own. For these the bound on epsilon
must hardly ever be above the accounted epsilon.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from reporting import check_writable, input_errors_end_it, read_result, table
from torch import Tensor

from recollect import FullyConnected, Images, audit, load
from recollect.canaries import CanarySet, make_canaries
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.training import train_to_loss

DELTA = 1e-5


@dataclass(frozen=True)
class Trial:
    """A network, the images and canaries that it is trained on, and the attacks."""

    images: str
    count: int
    layers: int
    width: int
    masks: str
    methods: str | None = None

    def canaries(self, seed: int) -> CanarySet:
        return make_canaries(self.images, self.count, seed=seed, delta=DELTA)

    def network(self, seed: int) -> FullyConnected:
        return FullyConnected(load(self.images).shape, layers=self.layers, width=self.width, seed=seed)

    def training_set(self, canaries: CanarySet) -> Images:
        own, added = load(self.images), canaries.training_images
        return Images(torch.cat([own.pixels, added.pixels]), [*own.ids, *added.ids], "photographs and canaries")


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print(tables(read_result(options.tables, "memorizing", "private")))
        return
    check_writable(options.out)
    like_demo = Trial(
        f"photos?count=40&size={options.size}", options.count, options.layers, options.width, "block,half"
    )
    small = Trial("photos?count=40&size=8", options.small_count, 4, 128, "half", "iterate")
    results: dict[str, Any] = {**origin("cpu"), "delta": DELTA}
    results["private"] = private(small, options)
    results["memorizing"] = fitted(like_demo, options)
    if options.out:
        write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=32, help="of the photographs for the first network")
    parser.add_argument("--count", type=int, default=60, help="canaries of the first network")
    parser.add_argument("--layers", type=int, default=6, help="of the first network")
    parser.add_argument("--width", type=int, default=512, help="of the first network")
    parser.add_argument("--loss", type=float, default=1e-7, help="at which the first network is fitted")
    parser.add_argument("--max-seconds", type=float, default=300, help="of the fit")
    parser.add_argument("--small-count", type=int, default=180, help="canaries of each network of DP-SGD")
    parser.add_argument("--runs", type=int, default=20, help="networks that are trained with DP-SGD")
    parser.add_argument("--epsilon", type=float, default=1.0, help="to which the noise of DP-SGD is set")
    parser.add_argument("--steps", type=int, default=100, help="of DP-SGD")
    parser.add_argument("--rate", type=float, default=0.1, help="the probability that a step takes an image")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, help="print the tables of such a file and run nothing")
    return parser.parse_args(arguments)


def fitted(trial: Trial, options: argparse.Namespace, seed: int = 42) -> dict[str, Any]:
    """Fit a network without noise and audit it."""
    canaries, network = trial.canaries(seed), trial.network(seed)
    done = train_to_loss(network, trial.training_set(canaries), options.loss, max_seconds=options.max_seconds)
    return {"network": vars(trial), "loss": done.loss, **audited(trial, network, canaries)}


def private(trial: Trial, options: argparse.Namespace) -> dict[str, Any]:
    """Train networks with DP-SGD and audit each."""
    noise, epsilon = noise_for(options.epsilon, options.rate, options.steps)
    rows = []
    for seed in range(options.runs):
        canaries, network = trial.canaries(seed), trial.network(seed)
        pixels = trial.training_set(canaries).pixels
        loss = train_privately(network, pixels, noise, options.rate, options.steps, seed)
        rows.append({"seed": seed, "loss": loss, **audited(trial, network, canaries)})
    above = sum(row["epsilon"] > epsilon for row in rows)
    return {
        "network": vars(trial), "accounted_epsilon": epsilon, "noise_multiplier": noise, "rate": options.rate,
        "steps": options.steps, "runs": len(rows), "above": above, "rows": rows,
    }  # fmt: skip


def noise_for(epsilon: float, rate: float, steps: int) -> tuple[float, float]:
    """Find the noise multiplier for an epsilon, and the epsilon that opacus accounts for with it."""
    from opacus.accountants import RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier

    accountant = RDPAccountant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the search begins far away, where no order of the accountant is the best
        noise = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=DELTA, sample_rate=rate, steps=steps, accountant="rdp"
        )
    accountant.history = [(noise, rate, steps)]
    return noise, accountant.get_epsilon(DELTA)


def train_privately(
    network: FullyConnected, pixels: Tensor, noise: float, rate: float, steps: int, seed: int, clip: float = 0.05
) -> float:
    """Train with opacus' DP optimizer on Poisson samples; give the loss in the end.

    The batch size that gradients are divided by is a constant: it must not depend on the coins.
    """
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    generator, batch = torch.Generator().manual_seed(seed), 500 * rate
    model = GradSampleModule(network)
    optimizer = DPOptimizer(
        torch.optim.Adam(network.parameters(), 2e-3), noise_multiplier=noise, max_grad_norm=clip,
        expected_batch_size=batch, loss_reduction="mean", generator=generator,
    )  # fmt: skip
    for _ in range(steps):
        taken = pixels[torch.rand(len(pixels), generator=generator) < rate].requires_grad_()  # for opacus' hooks
        optimizer.zero_grad()
        (model(taken) - taken.detach()).square().mean().backward()
        optimizer.step()
    model.to_standard_module()
    with torch.no_grad():
        return float((network(pixels) - pixels).square().mean())


def audited(trial: Trial, network: FullyConnected, canaries: CanarySet) -> dict[str, Any]:
    finding = audit(network.eval(), canaries=canaries, masks=trial.masks, methods=trial.methods).canaries
    assert finding is not None
    facts = finding.facts()
    return {"commitment": facts["commitment"], "groups": facts["groups"], "epsilon": facts["epsilon"]}


def tables(results: dict[str, Any]) -> str:
    heads = ["copies", "in recovered", "out recovered", "epsilon of all copies", "epsilon of one image"]
    rows = group_rows(results["memorizing"])
    private = results["private"]
    bounds = [row["epsilon"] for row in private["rows"]]
    positive = sum(bound > 0 for bound in bounds)
    sentence = (
        f"DP-SGD, accounted epsilon {private['accounted_epsilon']:.2f} at delta {results['delta']:g}: the bound is "
        f"above it in {private['above']} of {private['runs']} runs, and above 0 in {positive}. The largest is "
        f"{max(bounds):.2f}."
    )
    return "\n\n".join([table(heads, rows), sentence])


def group_rows(result: dict[str, Any]) -> list[list[str]]:
    return [
        [
            str(group["repeats"]), interval(group["in"]), interval(group["out"]),
            f"{group['epsilon_of_repeats']:.2f}", f"{group['epsilon']:.2f}",
        ]
        for group in result["groups"]
    ]  # fmt: skip


def interval(rate: dict[str, Any]) -> str:
    return f"{rate['count']} of {rate['total']} ({rate['low']:.0%} to {rate['high']:.0%})"


if __name__ == "__main__":
    main()
