"""Recovery beside the loops a researcher would write and beside the network alone, in one run on one machine.

    python benchmarks/recovery.py --cases demo --checkpoint demo/training/loss-1e-08.safetensors --out cpu.json
    python benchmarks/recovery.py --gpu --data DATA --out gpu.json
    python benchmarks/recovery.py --tables cpu.json gpu.json

DATA holds `tiny-imagenet-200.zip`, `svhn/` and `cifar-10-batches-py/`; without it the images are random. The second
command runs every GPU case in a few minutes on one H200 and needs torch, numpy, Pillow, scipy and safetensors.

For the same images, network and first masks it times, and takes the shortest of several runs:

- (a) one image at a time with the paper's stopping rule. If that exceeds the budget, the images that settle soonest are
  run, and the rest is extrapolated from the rounds that the rule needs.
- (b) all images at once, until every one has stopped. If that exceeds the budget, some rounds are run and the rest is
  extrapolated.
- (c) recollect's `Blind`, with everything included.
- The network alone: at its best batch size, for exactly the image-steps that (c) needs. Each round of 40 steps applies
  the network 39 times, because the last step's output is never used.

"Same batches" is the network alone at the batch sizes of (c), as recollect runs it: with kernels of its choice, on a
GPU captured if that is faster. "(c) / network alone" is the median of turns in which both ran one after the other.
"""

from __future__ import annotations

import recollect  # isort: skip  # noqa: F401  # before torch: how OpenMP's threads wait is settled when torch is loaded

import argparse
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import baseline_recovery as baseline
import torch
from recovery_cases import CASES, Case, load_case
from recovery_tables import tables
from reporting import check_writable, input_errors_end_it, read_result
from timing import CLOCKS, Measured, best_of, in_turn, network_times, one_call, use_clock
from torch import Tensor, nn

from recollect import Blind, Images, Recovery, Stop, mask, observe
from recollect.auditing.model_facts import train_loss
from recollect.devices.precision import check_device, evaluation_mode
from recollect.engine import arithmetic_of, prepare
from recollect.methods.blind import CALM_ROUNDS, CONVERGED_MSE
from recollect.paper.origin import origin
from recollect.records import write_json
from recollect.recovery import Snapshot
from recollect.scoring import ACCURATE, APPROXIMATE, mse

CASES_ON = {"cuda": ["fc10", "fc20", "unet50", "unet1000"], "cpu": ["demo"]}


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print("\n\n".join(tables(read_result(path, "cases", "growth")) for path in options.tables))
        return
    check_device(options.device)
    check_writable(options.out, options.checkpoint)
    if options.threads:
        torch.set_num_threads(options.threads)
    use_clock(options.clock)
    results: dict[str, Any] = {"clock": options.clock, **origin(options.device)}
    results |= {"cases": {}, "growth": {}, "notes": collect_messages()}
    for name in options.cases:
        images, network = load_case(name, options)
        results["cases"][name] = compare(name, images, network, options)
        if name == options.growth_case:
            results["growth"][name] = grow(CASES[name], images, network, options)
        if options.out:
            write_json(options.out, results)
    print(tables(results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), help="networks and images; demo, without a GPU")
    parser.add_argument("--gpu", action="store_true", help=f"the cases {', '.join(CASES_ON['cuda'])} on a CUDA device")
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--checkpoint", type=Path, help="the network of a single case: read if there, else written")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds for each of (a) and (b), beyond them scaled")
    parser.add_argument("--repeats", type=count, default=3, help="runs of each at most; the best counts")
    parser.add_argument("--turns", type=count, default=5, help="runs of (c) and of the network alone, for their ratio")
    parser.add_argument(
        "--growth", type=count, nargs="*", default=[100, 400, 1600, 6400, 25_000],
        help="numbers of images, with the network of the first case; none after it: no such table",
    )  # fmt: skip
    parser.add_argument("--growth-rounds", type=count, default=3, help="for these images, at most")
    parser.add_argument("--threads", type=count, help="of the CPU")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu with --threads 1 on a busy machine")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON")
    parser.add_argument("--tables", type=Path, nargs="+", help="print the tables of such files and run nothing")
    options = parser.parse_args(arguments)
    options.device = "cuda" if options.gpu else "cpu"
    options.cases = options.cases or CASES_ON[options.device]
    options.growth_case = options.cases[0] if options.growth else None
    check_options(parser, options)
    return options


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.clock == "cpu" and (options.gpu or options.threads != 1):
        parser.error("--clock cpu counts the seconds of one thread: use it with --threads 1, not on a GPU")
    if not options.budget > 0:
        parser.error(f"--budget is a number of seconds, more than 0; got {options.budget:g}")
    if options.checkpoint and len(options.cases) > 1:
        parser.error("--checkpoint holds the network of one case; name that case alone with --cases")


def count(text: str) -> int:
    """A whole number from 1 on, as argparse reads it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is wanted, not {text!r}")
    return int(text)


def collect_messages() -> list[str]:
    """Collect log messages of recovery, such as why a network was not captured."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.getLogger("recollect.accelerate")
    logger.setLevel(logging.INFO)
    logger.addHandler(Listener())
    return messages


def compare(name: str, images: Images, f: nn.Module, options: argparse.Namespace) -> dict[str, Any]:
    """Time all contenders on one case."""
    case, device = CASES[name], options.device
    seen = observe(images, mask("block", images.shape))
    y = seen.y.to(device)
    settings = baseline.Settings(case.gamma, limit=case.limit)
    method = Blind(gamma=case.gamma, start=case.start, limit=case.limit)
    sizes: list[int] = []

    def ours_once() -> Recovery:
        sizes.clear()
        return method(f, y, trace=lambda s: sizes.append(len(s.index)))

    with torch.no_grad(), evaluation_mode(f):
        keep = case.start(y).keep  # type: ignore[attr-defined]
        baseline.admm(f, y[:1], keep[:1], settings)  # libraries initialize
        show_progress(f"{name}: recollect")
        ours = best_of(options.repeats, ours_once, device, options.budget)
        calm = Calm(y)
        theirs = rounds_by_the_papers_rule(method(f, y, trace=calm), calm.rounds, settings.limit)
        show_progress(f"{name}: one by one, and batched")
        soonest = theirs.argsort(stable=True).cpu()
        which, one_by_one = timed_one_by_one(f, y, keep, settings, options, soonest, int(theirs.sum()))
        batched = timed_batch(f, y, keep, settings, options, int(theirs.max()))
        show_progress(f"{name}: the network alone")
        with prepare(f, y, None) as as_run:
            alone = network_times(f, as_run, y, sizes, method.steps - 1)
        recovery, needed = ours.value, int((ours.value.steps - ours.value.rounds).sum())
        batch = alone["best_batch"]
        turns = in_turn(options.turns, ours_once, f, y[:batch], max(1, round(needed / batch)))
    truth = images.pixels.to(recovery.estimate)
    stops = {stop.name.lower(): recovery.stops.count(stop) for stop in sorted(set(recovery.stops))}
    return {
        "images": len(y), "shape": list(images.shape), "stops": stops,
        "source": case.source.replace("{data}/", "") if options.data or "{data}" not in case.source else "random",
        "rounds": recovery.rounds.float().mean().item(), "image_steps": needed, "batch_sizes": sizes,
        "limit": case.limit, "products": arithmetic_of(f, y), "train_loss": train_loss(f, images),
        "recollect": ours.describe(needed), "network_alone": alone,
        "over_network_alone": [seconds / seconds_alone for seconds, seconds_alone in turns], "turns": turns,
        "one_by_one": one_by_one.describe() | {"difference": difference(one_by_one.value, recovery, truth, which)},
        "batched": batched.describe() | {"difference": difference(batched.value, recovery, truth)},
    }  # fmt: skip


def show_progress(line: str) -> None:
    print(line, flush=True)


def timed_one_by_one(
    f: nn.Module, y: Tensor, keep: Tensor, settings: baseline.Settings, options: argparse.Namespace, order: Tensor,
    rounds: int,
) -> tuple[Tensor, Measured]:  # fmt: skip
    """Recover image by image in this order; after the budget, extrapolate by the rounds that are left."""

    def recover() -> tuple[Tensor, baseline.Outcome]:
        return baseline.recover_one_by_one(f, y, keep, settings, options.budget, order)

    run = best_of(options.repeats, recover, options.device, options.budget)
    which, outcome = run.value
    done = int(outcome.rounds.sum())
    share = 1.0
    if len(which) < len(y):
        share = done / rounds if done < rounds else len(which) / len(y)
    part = "1 image" if len(which) == 1 else f"{len(which)} images"
    return which, Measured(outcome, run.seconds, run.peak, done * settings.steps, share, part)


def timed_batch(
    f: nn.Module, y: Tensor, keep: Tensor, settings: baseline.Settings, options: argparse.Namespace, rounds: int
) -> Measured:
    """Recover all images as one batch; after the budget, extrapolate by the rounds of the slowest image."""
    run = best_of(
        options.repeats, lambda: baseline.recover(f, y, keep, settings, time.perf_counter() + options.budget),
        options.device, options.budget,
    )  # fmt: skip
    done = int(run.value.rounds.max())
    share = 1.0 if bool(run.value.stopped.all()) else min(1.0, done / rounds)
    return Measured(run.value, run.seconds, run.peak, done * settings.steps * len(y), share, f"{done} rounds")


class Calm:
    """A trace that counts, as the paper's rule does, each image's consecutive rounds without change."""

    def __init__(self, y: Tensor) -> None:
        self.rounds = torch.zeros(len(y), dtype=torch.int64, device=y.device)
        self._before = y.clone()

    def __call__(self, shot: Snapshot) -> None:
        close = (mse(shot.estimate, self._before[shot.index]).to(shot.round.device) < CONVERGED_MSE) & (shot.round > 1)
        self.rounds[shot.index] = torch.where(close, self.rounds[shot.index] + 1, 0)
        self._before[shot.index] = shot.estimate


def rounds_by_the_papers_rule(recovery: Recovery, calm: Tensor, limit: int) -> Tensor:
    """Count the rounds of the paper's rule: three calm ones for images that settle, else the limit."""
    settles = recovery.stop == Stop.CONVERGED
    return torch.where(settles, (recovery.rounds + CALM_ROUNDS - calm).clamp(max=limit), limit)


def difference(theirs: baseline.Outcome, ours: Recovery, truth: Tensor, which: Tensor | None = None) -> dict[str, Any]:
    """Find the largest difference in value among images that settled and took as many rounds.

    Also count the images further apart than an accurate recovery may be, and how many of these were recovered.
    """
    which = torch.arange(len(truth)) if which is None else which
    positions = which.to(ours.stop.device)
    settled = (ours.stop[positions] == Stop.CONVERGED) & (theirs.rounds >= ours.rounds[positions])
    estimate, others = ours.estimate[positions][settled], theirs.x[settled]
    largest = (estimate - others).abs().flatten(1).amax(1)
    apart = mse(estimate, others) > ACCURATE
    recovered = mse(estimate[apart], truth[positions][settled][apart]) < APPROXIMATE
    return {
        "settled": int(settled.sum()), "of": len(which), "largest": largest.max().item() if len(largest) else None,
        "apart": int(apart.sum()), "apart_and_recovered": int(recovered.sum()),
    }  # fmt: skip


def grow(case: Case, images: Images, f: nn.Module, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure time and working memory (without y and the results) for growing numbers of images.

    Each image has its own mask. The network alone is timed at its best batch size, up to recovery's own.
    """
    method = Blind(gamma=case.gamma, start=case.start, limit=options.growth_rounds)
    rows = []
    show_progress("more and more images")
    for count in options.growth:
        pixels = images.pixels.repeat(-(-count // len(images)), 1, 1, 1)[:count]
        y = mask("random-each:0.5", images.shape, count=count).apply(pixels)
        repeats = 2 if options.gpu or count < 5000 else 1
        run = best_of(repeats, lambda y=y: method(f, y), options.device)  # type: ignore[misc]
        steps = int((run.value.steps - run.value.rounds).sum())
        held = 0 if options.gpu else run.value.estimate.nbytes + run.value.degradation.keep.nbytes
        with prepare(f, y, None) as as_run, torch.no_grad():
            batches = sorted({min(size, as_run.chunk, count) for size in (64, 512, 2048, as_run.chunk)})
            alone = max(size / one_call(f, y[:size].to(options.device)) for size in batches)
        rows.append(
            {"images": count, **replace(run, peak=run.peak - held).describe(steps), "network_alone_per_second": alone}
        )
    return rows


if __name__ == "__main__":
    main()
