"""Recovery beside the loops a researcher would write and beside the network alone, in one run on one machine.

    python benchmarks/recovery.py --cases demo --checkpoint demo/training/loss-1e-08.safetensors --out cpu.json
    python benchmarks/recovery.py --gpu --data DATA --out gpu.json
    python benchmarks/recovery.py --tables cpu.json gpu.json

DATA holds `tiny-imagenet-200.zip`, `svhn/` and `cifar-10-batches-py/`; without it the images are random. The second
command runs every GPU case in a few minutes on one H200 and needs torch, numpy, Pillow, scipy and safetensors.

For the same images, network and first masks:
(a) one image at a time with the paper's stopping rule; where that is long, some images, those that settle soonest, and
    the rest at their pace for the rounds that the rule needs: up to three more than (c) where it settles, by what the
    rule has counted when (c) stops, and all that are allowed where not;
(b) the same for all images at once, until every one has stopped; where that is long, some rounds and the rest alike;
(c) recollect's `Blind`, everything included, drawing its first masks too;
each the shortest of some runs, of (a) and (b) of as many as the budget allows;
floor: the network alone at its best batch size, of those there are images for, and for exactly the image-steps that (c)
    needs: each round of 40 steps applies it 39 times, since the last step's outcome is never used.
"In work" is the network at the batch sizes of (c), as recollect runs it: products in kernels of its choice, on a GPU
captured where that is faster. "(c) / floor" is the median of turns in which both ran one after the other.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import plain_recovery as plain
import torch
from measuring import (
    CLOCKS,
    Measured,
    best_of,
    can_be_written,
    in_turn,
    mistakes_told,
    network_times,
    one_call,
    read_result,
    tables,
    use_clock,
)
from recovery_cases import CASES, Case, prepare
from torch import Tensor, nn

from recollect import Blind, Images, Recovery, Stop, mask, observe
from recollect.auditing.model_facts import train_loss
from recollect.devices.precision import check_device, evaluation_mode
from recollect.engine.runtime import products_of, ready
from recollect.methods.blind import CALM, CALM_ROUNDS
from recollect.records import provenance, write_json
from recollect.recovery import Snapshot
from recollect.scoring import ACCURATE, APPROXIMATE, mse

ON_GPU = ["fc10", "fc20", "unet50", "unet1000"]


def main(arguments: Sequence[str] | None = None) -> None:
    with mistakes_told():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    if options.tables:
        print("\n\n".join(tables(read_result(path, "cases", "growth")) for path in options.tables))
        return
    check_device(options.device)
    can_be_written(options.out, options.checkpoint)
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
    parser.add_argument("--cases", nargs="+", choices=list(CASES), help="networks and images; demo, without a GPU")
    parser.add_argument("--gpu", action="store_true", help=f"the cases {', '.join(ON_GPU)} on a CUDA device")
    parser.add_argument("--data", type=Path, help="folder with the data sets; without it images are random")
    parser.add_argument("--checkpoint", type=Path, help="the network of a single case: read if there, else written")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds for each of (a) and (b), beyond them scaled")
    parser.add_argument("--repeats", type=count, default=3, help="runs of each at most; the best counts")
    parser.add_argument("--turns", type=count, default=5, help="runs of (c) and the floor in turn, for their ratio")
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
    options.cases = options.cases or (ON_GPU if options.gpu else ["demo"])
    options.growth_case = options.cases[0] if options.growth else None
    if options.clock == "cpu" and (options.gpu or options.threads != 1):
        parser.error("--clock cpu counts the seconds of one thread: use it with --threads 1, not on a GPU")
    if not options.budget > 0:
        parser.error(f"--budget is a number of seconds, more than 0; got {options.budget:g}")
    if options.checkpoint and len(options.cases) > 1:
        parser.error("--checkpoint holds the network of one case; name that case alone with --cases")
    return options


def count(text: str) -> int:
    """A whole number from 1 on, as argparse reads it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is wanted, not {text!r}")
    return int(text)


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

    with torch.no_grad(), evaluation_mode(f):
        keep = case.start(y).keep  # type: ignore[attr-defined]
        plain.admm(f, y[:1], keep[:1], settings)  # libraries set themselves up
        say(f"{name}: recollect")
        ours = best_of(options.repeats, ours_once, device, options.budget)
        calm = Calm(y)
        theirs = rounds_by_the_papers_rule(method(f, y, trace=calm), calm.rounds, settings.limit)
        say(f"{name}: one by one, and batched")
        soonest = theirs.argsort(stable=True).cpu()
        which, one_by_one = timed_one_by_one(f, y, keep, settings, options, soonest, int(theirs.sum()))
        batched = timed_batch(f, y, keep, settings, options, int(theirs.max()))
        say(f"{name}: the network alone")
        with ready(f, y, None) as as_run:
            floor = network_times(f, as_run, y, sizes, method.steps - 1)
        recovery, needed = ours.value, int((ours.value.steps - ours.value.rounds).sum())
        batch = floor["best_batch"]
        turns = in_turn(options.turns, ours_once, f, y[:batch], max(1, round(needed / batch)))
    truth = images.pixels.to(recovery.estimate)
    stops = {stop.name.lower(): recovery.stops.count(stop) for stop in sorted(set(recovery.stops))}
    return {
        "images": len(y), "shape": list(images.shape), "stops": stops,
        "source": case.source.replace("{data}/", "") if options.data or "{data}" not in case.source else "random",
        "rounds": recovery.rounds.float().mean().item(), "image_steps": needed, "batch_sizes": sizes,
        "limit": case.limit, "products": products_of(f, y), "train_loss": train_loss(f, images),
        "recollect": ours.describe(needed), "floor": floor,
        "over_floor": [seconds / alone for seconds, alone in turns], "turns": turns,
        "one_by_one": one_by_one.describe() | {"difference": difference(one_by_one.value, recovery, truth, which)},
        "batched": batched.describe() | {"difference": difference(batched.value, recovery, truth)},
    }  # fmt: skip


def say(words: str) -> None:
    print(words, flush=True)


def timed_one_by_one(
    f: nn.Module, y: Tensor, keep: Tensor, settings: plain.Settings, options: argparse.Namespace, order: Tensor,
    rounds: int,
) -> tuple[Tensor, Measured]:  # fmt: skip
    """Image by image, those first whose answers settle soonest and can be compared; where the budget ends before the
    last, the rest of all these rounds at the same pace."""
    run = best_of(
        options.repeats, lambda: plain.recover_one_by_one(f, y, keep, settings, options.budget, order), options.device,
        options.budget,
    )  # fmt: skip
    which, outcome = run.value
    done = int(outcome.rounds.sum())
    share = 1.0 if len(which) == len(y) else done / rounds if done < rounds else len(which) / len(y)
    part = "1 image" if len(which) == 1 else f"{len(which)} images"
    return which, Measured(outcome, run.seconds, run.peak, done * settings.steps, share, part)


def timed_batch(
    f: nn.Module, y: Tensor, keep: Tensor, settings: plain.Settings, options: argparse.Namespace, rounds: int
) -> Measured:
    """All rounds that the slowest image needs; where the budget ends before, the rest at the same pace."""
    run = best_of(
        options.repeats, lambda: plain.recover(f, y, keep, settings, time.perf_counter() + options.budget),
        options.device, options.budget,
    )  # fmt: skip
    done = int(run.value.rounds.max())
    share = 1.0 if bool(run.value.stopped.all()) else min(1.0, done / rounds)
    return Measured(run.value, run.seconds, run.peak, done * settings.steps * len(y), share, f"{done} rounds")


class Calm:
    """A trace that counts as the paper's rule does: the rounds running with next to no change, of each image."""

    def __init__(self, y: Tensor) -> None:
        self.rounds = torch.zeros(len(y), dtype=torch.int64, device=y.device)
        self._before = y.clone()

    def __call__(self, shot: Snapshot) -> None:
        close = (mse(shot.estimate, self._before[shot.index]).to(shot.round.device) < CALM) & (shot.round > 1)
        self.rounds[shot.index] = torch.where(close, self.rounds[shot.index] + 1, 0)
        self._before[shot.index] = shot.estimate


def rounds_by_the_papers_rule(recovery: Recovery, calm: Tensor, limit: int) -> Tensor:
    """For each image: where recollect saw it settle, those that are missing of three calm ones; else the paper's rule
    runs into the limit."""
    settles = recovery.stop == Stop.CONVERGED
    return torch.where(settles, (recovery.rounds + CALM_ROUNDS - calm).clamp(max=limit), limit)


def difference(theirs: plain.Outcome, ours: Recovery, truth: Tensor, which: Tensor | None = None) -> dict[str, Any]:
    """The largest difference in value among images that recollect saw settle and that they took as many rounds for.

    Where some are further apart than an accurate recovery may be, how many, and how many of these were recovered.
    """
    which = torch.arange(len(truth)) if which is None else which
    place = which.to(ours.stop.device)
    settled = (ours.stop[place] == Stop.CONVERGED) & (theirs.rounds >= ours.rounds[place])
    estimate, others = ours.estimate[place][settled], theirs.x[settled]
    largest = (estimate - others).abs().flatten(1).amax(1)
    apart = mse(estimate, others) > ACCURATE
    found = mse(estimate[apart], truth[place][settled][apart]) < APPROXIMATE
    return {
        "settled": int(settled.sum()), "of": len(which), "largest": largest.max().item() if len(largest) else None,
        "apart": int(apart.sum()), "apart_and_recovered": int(found.sum()),
    }  # fmt: skip


def grow(case: Case, images: Images, f: nn.Module, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time and working memory (without y and the results) for more and more images, each with a mask of its own, beside
    the network alone at the best batch size, up to what is in work at once."""
    method = Blind(gamma=case.gamma, start=case.start, limit=options.growth_rounds)
    rows = []
    say("more and more images")
    for count in options.growth:
        pixels = images.pixels.repeat(-(-count // len(images)), 1, 1, 1)[:count]
        y = mask("random-each:0.5", images.shape, count=count).apply(pixels)
        repeats = 2 if options.gpu or count < 5000 else 1
        run = best_of(repeats, lambda y=y: method(f, y), options.device)  # type: ignore[misc]
        steps = int((run.value.steps - run.value.rounds).sum())
        held = 0 if options.gpu else run.value.estimate.nbytes + run.value.degradation.keep.nbytes
        with ready(f, y, None) as as_run, torch.no_grad():
            batches = sorted({min(size, as_run.chunk, count) for size in (64, 512, 2048, as_run.chunk)})
            alone = max(size / one_call(f, y[:size].to(options.device)) for size in batches)
        rows.append({"images": count, **replace(run, peak=run.peak - held).describe(steps), "floor_per_second": alone})
    return rows


if __name__ == "__main__":
    main()
