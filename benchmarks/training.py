"""Time to each milestone: recollect's trainer beside the loop a researcher would write, in one run.

    python benchmarks/training.py --case demo
    python benchmarks/training.py --case fc10 --data 'tiny_imagenet?count=600' --json fc10.json
    python benchmarks/training.py --case unet --data 'svhn?count=50' --activation softplus

The plain loop is eager float32 Adam with PyTorch's own betas and initialisation, all images at every step, at each of
the usual rates. It is given the benefit of the doubt: a milestone counts when one step's loss is at or below it, where
the trainer's counts when the loss is measured again in full float32. Steps are in brackets: they do not depend on what
else the machine is doing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from recollect import FullyConnected, Images, UNet
from recollect.devices.precision import float32_precision
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.sources import load
from recollect.training import MILESTONES, train_to_loss

CHECK_EVERY = 10  # steps between two checks of the plain loop's loss
RATES = (1e-3, 1e-4)


@dataclass(frozen=True)
class Timing:
    """One contender: seconds and steps to each milestone it reached, and how it ended."""

    name: str
    reached: dict[float, float]
    steps_to: dict[float, int]
    seconds: float
    steps: int
    loss: float

    def cell(self, milestone: float) -> str:
        if milestone not in self.reached:
            return f"> {self.seconds:.0f} s"
        return f"{self.reached[milestone]:.1f} s ({self.steps_to[milestone]})"


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    images = load(options.data)
    milestones = [m for m in MILESTONES if m >= options.until * (1 - 1e-9)] or [options.until]
    print(f"{options.case}: {len(images)} images of {'x'.join(map(str, images.shape))}, {describe(options.device)}")
    timings = [time_trainer(options, images, milestones)]
    for rate in options.rates:
        timings.append(time_plain_loop(options, images, milestones, rate))
    print(table(milestones, timings))
    if options.json:
        write_json(options.json, record(options, images, milestones, timings))
        print(f"written to {options.json}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", choices=["demo", "fc10", "unet"], default="demo")
    parser.add_argument("--data", default="photos?count=40&size=32", help="any spelling that recollect data show takes")
    parser.add_argument("--activation", default="lrelu", choices=["lrelu", "prelu", "softplus"])
    parser.add_argument("--until", type=float, default=1e-8)
    parser.add_argument("--max-seconds", type=float, default=300.0, help="for each contender")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, help="of the plain loop, one run each")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of the CPU, for all contenders")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument(
        "--quick", action="store_true", help="a toy of a few seconds: shows that it runs, times nothing"
    )
    options = parser.parse_args(arguments)
    if options.case == "demo":
        options.device = "cpu"
    if options.quick:
        options.data, options.until, options.max_seconds = "photos?count=6&size=8", 1e-4, 3.0
        options.threads = 1  # so small a network only loses time to threads
    return options


def make_network(options: argparse.Namespace, images: Images) -> nn.Module:
    if options.case == "unet":
        widths = (8, 16) if options.quick else (64, 128, 256, 512)
        return UNet(channels=images.shape[0], widths=widths, activation=options.activation)
    layers, width = (10, 1024) if options.case == "fc10" else (6, 512)
    if options.quick:
        layers, width = 3, 64
    return FullyConnected(images.shape, layers=layers, width=width, activation=options.activation)


def time_trainer(options: argparse.Namespace, images: Images, milestones: Sequence[float]) -> Timing:
    network, limit = make_network(options, images), options.max_seconds
    done = train_to_loss(network, images, milestones[-1], milestones, device=options.device, max_seconds=limit)
    last = done.history[-1]
    reached = {m.wanted: m.seconds for m in done.milestones}
    return Timing(
        "recollect", reached, {m.wanted: m.steps for m in done.milestones}, last.seconds, last.steps, done.loss
    )


def time_plain_loop(options: argparse.Namespace, images: Images, milestones: Sequence[float], rate: float) -> Timing:
    network, x = plain(make_network(options, images)).to(options.device), images.pixels.to(options.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    reached: dict[float, float] = {}
    steps_to: dict[float, int] = {}
    started, steps, loss = time.monotonic(), 0, float("inf")
    with float32_precision("ieee"):
        while len(reached) < len(milestones) and time.monotonic() - started < options.max_seconds:
            for _ in range(CHECK_EVERY):
                last = plain_step(network, optimizer, x)
            steps, loss = steps + CHECK_EVERY, float(last)
            seconds = time.monotonic() - started
            new = [m for m in milestones if loss <= m and m not in reached]
            reached |= dict.fromkeys(new, seconds)
            steps_to |= dict.fromkeys(new, steps)
    return Timing(f"plain Adam {rate:g}", reached, steps_to, time.monotonic() - started, steps, loss)


def plain(network: nn.Module) -> nn.Module:
    """The network as PyTorch itself would have drawn it."""
    torch.manual_seed(42)
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            module.reset_parameters()
    return network


def plain_step(network: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(x), x)
    loss.backward()
    optimizer.step()
    return loss.detach()


def ratio(milestone: float, ours: Timing, other: Timing) -> str:
    """Say how many times longer the other took: a bound if it gave up, nothing if the trainer did."""
    if milestone not in ours.reached:
        return "-"
    if milestone in other.reached:
        return f"{other.reached[milestone] / ours.reached[milestone]:.1f}x"
    return f"> {other.seconds / ours.reached[milestone]:.1f}x"


def table(milestones: Sequence[float], timings: Sequence[Timing]) -> str:
    ours = timings[0]
    columns = [["train loss", *(f"{milestone:.0e}" for milestone in milestones), "steps", "ended at"]]
    for timing in timings:
        times = [timing.cell(milestone) for milestone in milestones]
        columns.append([timing.name, *times, str(timing.steps), f"{timing.loss:.1e}"])
        if timing is not ours:
            columns.append(["ratio", *(ratio(milestone, ours, timing) for milestone in milestones), "", ""])
    aligned = []
    for column in columns:
        width = max(len(text) for text in column)
        aligned.append([text.rjust(width) for text in column])
    return "\n".join("  ".join(row) for row in zip(*aligned, strict=True))


def record(
    options: argparse.Namespace, images: Images, milestones: Sequence[float], timings: Sequence[Timing]
) -> dict[str, object]:
    return {
        "case": options.case, "data": images.name, "data_hash": images.hash, "activation": options.activation,
        "milestones": list(milestones), "max_seconds": options.max_seconds, "threads": torch.get_num_threads(),
        "contenders": list(timings), **origin(options.device),
    }  # fmt: skip


def describe(device: str) -> str:
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    return f"{origin(device)['device']}{threads}"


if __name__ == "__main__":
    main()
