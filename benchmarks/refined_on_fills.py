"""Refined beside blind, iterate and the known mask, whatever erased pixels hold, and the gamma that an audit chooses.

    python benchmarks/refined_on_fills.py --set reported --data DATA --cache CACHE --json results/refined-on-fills.json

DATA holds cifar10.npy and svhn.npy, 32 x 32 pixels: 1,000 and 499 images for what is recorded, drawn by
`load("cifar10:FOLDER?count=1000&seed=42")` and `load("svhn:FOLDER?count=499&seed=42")`. Each network is trained and
measured in a process of its own.
On an H200, `--train-seconds 64 --seconds 470` takes nine minutes at most.
Networks and finished parts are kept in CACHE: the same call continues, and parts that are there are not measured again.
Settings of refined and of the search for gamma may be changed by what `--set validation` shows, never by the other set.
Costs are applications of the autoencoder to an image. refined may take three times blind's and iterate's once.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from refined_cases import COLLECTIONS, Case, Collection, Damaged, attack_settings, damage, images_of
from refined_tables import tables
from reporting import check_writable, input_errors_end_it
from torch import Tensor, nn

from recollect import Blind, Images, Iterate, KnownMask, Recovery, Score, Stop
from recollect.auditing.tuning import Setting, Tuning, masks_to_tune_on, search, search_space, set_apart, try_method
from recollect.degradation import Observation, Start
from recollect.methods import Method, Refined
from recollect.methods.refined import BUDGET_FACTOR
from recollect.paper.origin import origin
from recollect.records import read_json, write_json
from recollect.scoring import ACCURATE

GAMMAS = [round(float(gamma), 3) for gamma in np.geomspace(0.03, 5, 16)]
SMALL_GAMMAS, SMALL_LIMIT = GAMMAS[5::5], 3  # of a dry run, and its rounds
KNOWN_STEPS = 400
JOBS_ON_GPU = 4  # networks that are trained side by side share its time
REPORT_EVERY = 5  # seconds between two writes of the results
STAGES = ("cells", "gammas")


@dataclass(frozen=True)
class Work:
    """One network of a collection, and how its parts are measured."""

    name: str
    options: argparse.Namespace

    @property
    def collection(self) -> Collection:
        return COLLECTIONS[self.options.set]

    @property
    def case(self) -> Case:
        return self.collection.cases[self.name]

    @property
    def folder(self) -> Path:
        return Path(self.options.cache) / self.options.set / self.name.replace(" ", "-")

    def once(self, part: str, compute: Callable[[], Any]) -> Any:
        """Read a part that is there, else compute and keep it; None if the time is over."""
        file = self.folder / f"{part}.json"
        if not file.exists():
            if time.time() > self.options.deadline:
                return None
            write_json(file, compute())
        return read_json(file)

    def read(self, part: str) -> Any:
        file = self.folder / f"{part}.json"
        return read_json(file) if file.exists() else None

    def images(self) -> tuple[Images, Images]:
        return images_of(self.case, self.collection, self.options.data, self.options.small)

    def network(self, images: Images) -> nn.Module | None:
        """Take the network from its folder, or train it now; None if the time is over."""
        file = self.folder / "network.pt"
        if self.once("network", lambda: self._train(images, file)) is None:
            return None
        network = self.case.untrained(images.image_shape, self.options.small)
        network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        return network.to(self.options.device).eval()

    def _train(self, images: Images, file: Path) -> dict[str, Any]:
        began = time.time()
        seconds = max(1.0, min(self.case.time * self.options.train_seconds, self.options.deadline - began))
        network, loss = self.case.fit(images, self.options.device, seconds, self.options.small)
        torch.save(network.state_dict(), file)
        return {"images": len(images), "loss": loss, "seconds": time.time() - began}


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    check_writable(options.json, *(work.folder / "cells.json" for work in works(options)))
    options.deadline = time.time() + options.seconds
    stages = in_processes(options) if options.jobs > 1 else one_by_one(options)
    for _ in stages:
        write_json(options.json, results(options))
    print(tables(results(options)))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(COLLECTIONS), required=True)
    parser.add_argument("--cache", type=Path, required=True, help="folder for networks and finished parts")
    parser.add_argument("--json", type=Path, required=True, help="all numbers so far are written here")
    parser.add_argument("--data", type=Path, help="folder of cifar10.npy and svhn.npy; a dry run can do without")
    parser.add_argument("--cases", help="comma-separated; all by default")
    parser.add_argument("--count", type=int, default=16, help="training images attacked, and half as many unseen")
    parser.add_argument("--gamma-count", type=int, default=12, help="training images under each gamma")
    parser.add_argument(
        "--train-seconds", type=float, default=60, help="of each network, at the most; U-Nets take longer"
    )
    parser.add_argument("--seconds", type=float, default=330, help="after which no further part is begun")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, help=f"processes at a time; by default {JOBS_ON_GPU} on a GPU, else one")
    parser.add_argument("--threads", type=int, help="of each process")
    parser.add_argument("--small", action="store_true", help="dry run: tiny networks and images, a mask, two fills")
    options = parser.parse_args(arguments)
    known = COLLECTIONS[options.set].cases
    options.cases = options.cases.split(",") if options.cases else list(known)
    if unknown := set(options.cases) - set(known):
        parser.error(f"there is no case {min(unknown)!r}; choose from {', '.join(known)}")
    return with_sizes(options)


def with_sizes(options: argparse.Namespace) -> argparse.Namespace:
    """Add what follows from the options: the sizes of a dry run, processes and threads."""
    options.limit = SMALL_LIMIT if options.small else Blind.limit
    if options.small:
        options.count, options.gamma_count, options.train_seconds = 2, 2, min(options.train_seconds, 0.5)
    options.jobs = options.jobs or (JOBS_ON_GPU if options.device.startswith("cuda") else 1)
    options.threads = options.threads or max(1, (os.cpu_count() or 1) // options.jobs)
    return options


def works(options: argparse.Namespace) -> list[Work]:
    return [Work(name, options) for name in options.cases]


def one_by_one(options: argparse.Namespace) -> Iterator[None]:
    for stage in STAGES:
        for work in works(options):
            measure(work, stage)
            yield


def in_processes(options: argparse.Namespace) -> Iterator[None]:
    """Measure networks side by side; a network's gammas wait for its cells, so that it is trained once."""
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        longest_first = sorted(works(options), key=lambda work: -work.case.time)
        running = {pool.submit(measure, work, STAGES[0]): (work, 1) for work in longest_first}
        while running:
            for future in wait(running, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED).done:
                work, following = running.pop(future)
                if error := future.exception():  # the other networks need not suffer
                    print(f"{work.name} failed: {type(error).__name__}: {error}", flush=True)
                elif following < len(STAGES):
                    running[pool.submit(measure, work, STAGES[following])] = (work, following + 1)
            yield


def measure(work: Work, stage: str) -> None:
    """Measure one stage of a network, as far as the time allows."""
    torch.set_num_threads(work.options.threads)
    train, unseen = work.images()
    network = work.network(train)
    if network is None:
        return
    if stage == "cells":
        work.once("cells", lambda: measured_cells(work, network, train, unseen))
    else:
        measure_gammas(work, network, train)
    print(f"{work.name}: {stage}, {work.options.deadline - time.time():.0f} s left", flush=True)


def measured_cells(work: Work, network: nn.Module, train: Images, unseen: Images) -> list[dict[str, Any]]:
    """Attack training and unseen images under every mask and fill with every method: a row a cell."""
    count, rows = work.options.count, []
    for part, images in (("train", train[train.spread(count)]), ("unseen", unseen[unseen.spread(count // 2)])):
        damaged = damage(images, masks_of(work), fills_of(work), work.collection.seed)
        recoveries = attacked(network, damaged, *attack_settings(work.case, network), work.options.limit)
        rows += [
            {"case": work.name, "set": part, "mask": mask, "fill": fill, **row_of(recoveries, damaged, cell)}
            for cell, (mask, fill) in enumerate(damaged.cells)
        ]
    return rows


def attacked(f: nn.Module, damaged: Damaged, gamma: float, start: Start, limit: int) -> dict[str, Recovery]:
    methods: dict[str, Method] = {
        "blind": Blind(gamma, limit=limit, start=start),
        "iterate": Iterate(),
        "refined": Refined(gamma, limit=limit, start=start),
        "known": KnownMask(gamma, KNOWN_STEPS),
    }
    return {name: method(f, damaged.y, damaged.truth) for name, method in methods.items()}


def row_of(recoveries: dict[str, Recovery], damaged: Damaged, cell: int) -> dict[str, Any]:
    """Count what each method recovers in a cell, its cost, and how its images stopped."""
    rows = damaged.rows(cell)
    originals = damaged.images.pixels[rows]
    of_cell = {name: recovery[rows] for name, recovery in recoveries.items()}
    scores = {name: Score.of(recovery.estimate, originals) for name, recovery in of_cell.items()}
    accurate = {name: torch.from_numpy(score.mse < ACCURATE) for name, score in scores.items()}
    allowed = BUDGET_FACTOR * of_cell["blind"].steps + of_cell["iterate"].steps
    cycling = of_cell["blind"].stop == Stop.CYCLE
    return {
        "images": len(originals),
        "accurate": {name: score.accurate.count for name, score in scores.items()},
        "approximate": {name: score.approximate.count for name, score in scores.items()},
        "steps": {name: int(recovery.steps.sum()) for name, recovery in of_cell.items()},
        "stops": {name: dict(Counter(stop.name.lower() for stop in r.stops)) for name, r in of_cell.items()},
        "lost": int(((accurate["blind"] | accurate["iterate"]) & ~accurate["refined"]).sum()),
        "over_cost": int((of_cell["refined"].steps > allowed).sum()),
        "cycling": counts_of(cycling, accurate, of_cell["refined"]),
    }


def counts_of(cycling: Tensor, accurate: dict[str, Tensor], refined: Recovery) -> dict[str, int]:
    """Count images whose blind masks cycle: how many of these refined brings to rest, and what both recover."""
    return {
        "images": int(cycling.sum()),
        "converged": int((cycling & (refined.stop == Stop.CONVERGED)).sum()),
        "blind": int((cycling & accurate["blind"]).sum()),
        "refined": int((cycling & accurate["refined"]).sum()),
    }


def measure_gammas(work: Work, network: nn.Module, train: Images) -> None:
    """Let the audit's search choose gamma on images that are left out, then try a dense grid on others."""
    few = set_apart(train)
    tried = work.once("tuning", lambda: tuned(work, network, few))
    if tried is None:
        return
    chosen = Tuning(list(few.ids), [], tried).best
    others = train[[position for position, name in enumerate(train.ids) if name not in few.ids]]
    damaged = damaged_for_gammas(work, others[others.spread(work.options.gamma_count)], masks_of(work))
    for gamma in dict.fromkeys([chosen.gamma, *(SMALL_GAMMAS if work.options.small else GAMMAS)]):
        attack = Refined(gamma, start=chosen.start, limit=work.options.limit)
        work.once(f"gamma-{gamma:g}", partial(tried_with, network, damaged, attack))


def tuned(work: Work, network: nn.Module, few: Images) -> list[dict[str, Any]]:
    """Search as an audit with --gamma auto does, on all fills at once."""
    space = search_space(network, "auto", None, 0.0)
    settings = space.settings[: 2 if work.options.small else None]

    def try_on(setting: Setting, masks: list[str]) -> dict[str, Any]:
        return tried_with(network, damaged_for_gammas(work, few, tuple(masks)), space.attack(setting, paste=True))

    return search(settings, try_on, *masks_to_tune_on({name: name for name in masks_of(work)}))


def damaged_for_gammas(work: Work, images: Images, masks: tuple[str, ...]) -> Damaged:
    fills = work.collection.gamma_fills[: 2 if work.options.small else None]
    return damage(images, masks, fills, work.collection.seed)


def tried_with(network: nn.Module, damaged: Damaged, attack: Method) -> dict[str, Any]:
    tried = try_method(network, damaged.images, attack, [Observation(damaged.y, damaged.truth)])
    return {**tried, "images": len(damaged.y)}


def masks_of(work: Work) -> tuple[str, ...]:
    return work.collection.masks[: 1 if work.options.small else None]


def fills_of(work: Work) -> tuple[str, ...]:
    return work.collection.fills[:: 3 if work.options.small else 1]


def results(options: argparse.Namespace) -> dict[str, Any]:
    """Collect all parts that there are so far."""
    networks: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    gammas: dict[str, Any] = {}
    for work in works(options):
        networks[work.name] = work.read("network")
        rows += work.read("cells") or []
        if tried := work.read("tuning"):
            chosen: Setting = Tuning([], [], tried).best
            grid = sorted((read_json(file) for file in work.folder.glob("gamma-*.json")), key=lambda one: one["gamma"])
            gammas[work.name] = {"chosen": chosen.gamma, "tuning": tried, "grid": grid}
    return {"set": options.set, **origin(options.device), "networks": networks, "rows": rows, "gammas": gammas}


if __name__ == "__main__":
    main()
