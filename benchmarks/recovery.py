"""Recovery beside the loops a researcher would write and beside the network alone, in one run on one machine.

    python benchmarks/recovery.py --cases demo --checkpoint demo/training/loss-1e-08.safetensors --out cpu.json
    python benchmarks/recovery.py --gpu --data DATA --out gpu.json
    python benchmarks/recovery.py --tables cpu.json gpu.json

DATA holds `tiny-imagenet-200.zip`, `svhn/` and `cifar-10-batches-py/`; without it the images are random. The second
command runs every GPU case in a few minutes on one H200 and needs torch, numpy, Pillow, scipy and safetensors.

For the same images, network and first masks:
(a) one image at a time with the paper's stopping rule; where that is long, some images and the rest by their mean;
(b) the same for all images at once, until every one has stopped; where that is long, some rounds and the rest alike;
(c) recollect's `Blind`, everything included, drawing its first masks too;
floor: the network alone at its best batch size for exactly the image-steps that (c) needs: each round of 40 steps
applies it 39 times, since the last step's outcome is never used. "In work" is the same at the batch sizes of (c).
"(c) / floor" is the median of turns in which both ran one after the other.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import plain_recovery as plain
import torch
from measuring import CLOCKS, Measured, best_of, in_turn, network_times, tables, use_clock
from torch import Tensor, nn

from recollect import Blind, FullyConnected, Images, Iterate, KnownMask, Recovery, Stop, UNet, mask, observe
from recollect.checkpoints import load_checkpoint, save_checkpoint
from recollect.degradation import Degradation, all_erased, half_kept
from recollect.precision import as_judged
from recollect.records import provenance, read_json, write_json
from recollect.sources import load
from recollect.training import train_to_loss


@dataclass(frozen=True)
class Case:
    """A network to train on some images, and how it is recovered from."""

    network: Callable[[tuple[int, int, int]], nn.Module]
    source: str
    shape: tuple[int, int, int, int]  # of random images, where there is no data
    gamma: float
    loss: float
    train_seconds: float
    start: Callable[[Tensor], Degradation] = half_kept
    limit: int = 100  # rounds, for all contenders


TINY = "tiny-imagenet:{data}/tiny-imagenet-200.zip?per-class=3&seed=42"
SVHN = "svhn:{data}/svhn?count=50&seed=42"
CIFAR = "cifar10:{data}/cifar-10-batches-py?count=1000&seed=42"
CASES = {
    "quick": Case(lambda s: FullyConnected(s, layers=3, width=64), "", (12, 3, 8, 8), 0.5, 1e-5, 60),
    "demo": Case(
        lambda s: FullyConnected(s, layers=6, width=512), "photos?count=40&size=32", (40, 3, 32, 32), 0.5, 1e-8, 600
    ),
    "unet-small": Case(
        lambda _: UNet(widths=(16, 32, 64)), "photos?count=40&size=32", (40, 3, 32, 32), 1.0, 1e-4, 60, all_erased, 20
    ),
    "fc10": Case(lambda s: FullyConnected(s, layers=10), TINY, (600, 3, 64, 64), 0.5, 1e-8, 30),
    "fc20": Case(lambda s: FullyConnected(s, layers=20), TINY, (600, 3, 64, 64), 0.1, 1e-8, 40),
    "unet50": Case(lambda _: UNet(activation="softplus"), SVHN, (50, 3, 32, 32), 1.0, 1e-6, 20, all_erased),
    "unet1000": Case(lambda _: UNet(activation="softplus"), CIFAR, (1000, 3, 32, 32), 1.0, 1e-4, 25, all_erased, 20),
}  # fmt: skip
ON_GPU = ["fc10", "fc20", "unet50", "unet1000"]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.tables:
        print("\n\n".join(tables(read_json(path)) for path in options.tables))
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    use_clock(options.clock)
    results: dict[str, Any] = {"date": date.today().isoformat(), "clock": options.clock, **provenance(options.device)}
    results |= {"cases": {}, "growth": {}, "notes": listen()}
    for name in options.cases:
        images, network = prepare(name, options)
        results["cases"][name] = compare(name, images, network, options)
        if name == options.growth_case:
            results["growth"][name] = grow(CASES[name], images, network, options)
        if options.out:
            write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES))
    parser.add_argument("--gpu", action="store_true", help=f"the cases {', '.join(ON_GPU)} on a CUDA device")
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--checkpoint", type=Path, help="the network of a single case: read if there, else written")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds for each of (a) and (b), beyond them scaled")
    parser.add_argument("--repeats", type=int, default=3, help="runs of (c); the best counts")
    parser.add_argument("--turns", type=int, default=5, help="runs of (c) and the floor in turn, for their ratio")
    parser.add_argument(
        "--growth", type=int, nargs="*", default=[100, 400, 1600, 6400, 25_000], help="numbers of images"
    )
    parser.add_argument("--growth-rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu with --threads 1 on a busy machine")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, nargs="+", help="print the tables of such files and run nothing")
    options = parser.parse_args(arguments)
    options.device = "cuda" if options.gpu else "cpu"
    options.cases = options.cases or (ON_GPU if options.gpu else ["demo"])
    options.growth_case = options.cases[0] if options.growth else None
    if options.clock == "cpu" and (options.gpu or options.threads != 1):
        parser.error("--clock cpu counts the seconds of one thread: use it with --threads 1, not on a GPU")
    if options.checkpoint and len(options.cases) > 1:
        parser.error("--checkpoint holds the network of one case; name that case alone with --cases")
    return options


def listen() -> list[str]:
    """What the solvers have to say, such as why a network was not captured."""
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    logger = logging.getLogger("recollect.recovery")
    logger.setLevel(logging.INFO)
    logger.addHandler(Listener())
    return heard


def prepare(name: str, options: argparse.Namespace) -> tuple[Images, nn.Module]:
    """The images, and a network fitted to them as far as the case's time goes."""
    case = CASES[name]
    if case.source and (options.data or "{data}" not in case.source):
        images = load(case.source.format(data=options.data))
    else:
        images = Images(torch.rand(case.shape, generator=torch.Generator().manual_seed(0)))
    if options.checkpoint and options.checkpoint.exists():
        return images, load_checkpoint(options.checkpoint, options.device).network
    network = case.network(images.shape)
    done = train_to_loss(network, images, case.loss, device=options.device, max_seconds=case.train_seconds)
    print(f"{name}: {len(images)} images, trained to {done.loss:.1e} in {done.history[-1].seconds:.0f} s", flush=True)
    if options.checkpoint:
        save_checkpoint(options.checkpoint, network, {"loss": done.loss, "steps": done.history[-1].steps})
    return images, network.eval()


def compare(name: str, images: Images, f: nn.Module, options: argparse.Namespace) -> dict[str, Any]:
    """All contenders on one case."""
    case, device = CASES[name], options.device
    seen = observe(images, mask("block", images.shape))
    y = seen.y.to(device)
    settings = plain.Settings(case.gamma, limit=case.limit)
    method = Blind(gamma=case.gamma, start=case.start, limit=case.limit)
    sizes: list[int] = []

    def ours_once() -> Recovery:
        sizes.clear()
        return method(f, y, trace=lambda s: sizes.append(len(s.index)))

    with torch.no_grad(), as_judged(f):
        keep = case.start(y).keep  # type: ignore[attr-defined]
        plain.admm(f, y[:1], keep[:1], settings)  # libraries set themselves up
        ours = best_of(options.repeats, ours_once, device, options.budget)
        which, one_by_one = timed_one_by_one(f, y, keep, settings, options)
        batched = timed_batch(f, y, keep, settings, options, rounds_of_a_batch(ours.value, settings.limit))
        floor = network_times(f, y, sizes, method.steps - 1)
        others = other_methods(case, f, y, seen.truth, options)
        recovery, needed = ours.value, int((ours.value.steps - ours.value.rounds).sum())
        batch = floor["best_batch"]
        over_floor = in_turn(options.turns, ours_once, f, y[:batch], max(1, round(needed / batch)))
    print(f"{name}: measured", flush=True)
    stops = {stop.name.lower(): recovery.stops.count(stop) for stop in sorted(set(recovery.stops))}
    return {
        "images": len(y), "shape": list(images.shape), "stops": stops,
        "source": case.source.replace("{data}/", "") if options.data or "{data}" not in case.source else "random",
        "rounds": recovery.rounds.float().mean().item(), "image_steps": needed, "batch_sizes": sizes,
        "limit": case.limit,
        "recollect": ours.describe(needed), "floor": floor, "over_floor": over_floor, "others": others,
        "one_by_one": one_by_one.describe() | {"difference": difference(one_by_one.value, recovery, which)},
        "batched": batched.describe() | {"difference": difference(batched.value, recovery, torch.arange(len(y)))},
    }  # fmt: skip


def other_methods(
    case: Case, f: nn.Module, y: Tensor, truth: Degradation, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    known, iterate = KnownMask(case.gamma), Iterate(limit=50)
    runs = {"known": lambda: known(f, y, truth), "iterate, 50 steps": lambda: iterate(f, y)}
    described = {}
    for name, run in runs.items():
        measured = best_of(options.repeats, run, options.device, options.budget / 3)
        described[name] = measured.describe(int(measured.value.steps.sum()))
    return described


def timed_one_by_one(
    f: nn.Module, y: Tensor, keep: Tensor, settings: plain.Settings, options: argparse.Namespace
) -> tuple[Tensor, Measured]:
    run = best_of(1, lambda: plain.recover_one_by_one(f, y, keep, settings, options.budget), options.device)
    which, outcome = run.value
    steps = int(outcome.rounds.sum()) * settings.steps
    return which, Measured(outcome, run.seconds, run.peak, steps, share=len(which) / len(y))


def timed_batch(
    f: nn.Module, y: Tensor, keep: Tensor, settings: plain.Settings, options: argparse.Namespace, rounds: int
) -> Measured:
    """All rounds that the slowest image needs; where the budget ends before, the rest at the same pace."""
    until = time.perf_counter() + options.budget
    run = best_of(1, lambda: plain.recover(f, y, keep, settings, until), options.device)
    done = int(run.value.rounds.max())
    share = 1.0 if bool(run.value.stopped.all()) else min(1.0, done / rounds)
    return Measured(run.value, run.seconds, run.peak, done * settings.steps * len(y), share)


def rounds_of_a_batch(recovery: Recovery, limit: int) -> int:
    """Where every image settles, three more than the slowest needs; else the paper's rule runs into the limit."""
    settles = bool((recovery.stop == Stop.CONVERGED).all())
    return min(limit, int(recovery.rounds.max()) + 3) if settles else limit


def difference(theirs: plain.Outcome, ours: Recovery, which: Tensor) -> dict[str, Any]:
    """The largest difference in value among images that both have settled, and how many those are."""
    settled = (ours.stop[which.to(ours.stop.device)] == Stop.CONVERGED) & theirs.stopped
    apart = (ours.estimate[which.to(ours.stop.device)] - theirs.x).abs().flatten(1).amax(1)[settled]
    return {"settled": int(settled.sum()), "of": len(which), "largest": apart.max().item() if len(apart) else None}


def grow(case: Case, images: Images, f: nn.Module, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time and working memory (without y and the results) for more and more images, each with a mask of its own."""
    method = Blind(gamma=case.gamma, start=case.start, limit=options.growth_rounds)
    rows = []
    for count in options.growth:
        pixels = images.pixels.repeat(-(-count // len(images)), 1, 1, 1)[:count]
        y = mask("random-each:0.5", images.shape, count=count).apply(pixels)
        run = best_of(2 if count < 5000 else 1, lambda y=y: method(f, y), options.device)  # type: ignore[misc]
        steps = int((run.value.steps - run.value.rounds).sum())
        held = 0 if options.gpu else run.value.estimate.nbytes + run.value.degradation.keep.nbytes
        rows.append({"images": count, **replace(run, peak=run.peak - held).describe(steps)})
    return rows


if __name__ == "__main__":
    main()
