"""How many images may a diffusion model be trained on before blind recovery ends? Denoisers on CIFAR-10, by length.

    python benchmarks/diffusion.py --images FOLDER --out RECORDS --rounds 4 --budget 565 --only 100,300,1000
    python benchmarks/diffusion.py --images FOLDER --out RECORDS --rounds 4 --steps 3728 --only 1000b,3000,10000
    python benchmarks/diffusion.py --images FOLDER --out RECORDS --rounds 4 --budget 560 --only 3000-long
    python benchmarks/diffusion.py --images FOLDER --out RECORDS --rounds 4 --budget 580 --only 10000-long
    python benchmarks/diffusion.py --images FOLDER --out RECORDS --rounds 4 --budget 2400 --only 10000-longest
    python benchmarks/diffusion.py --out RECORDS --speed        # steps alone, of a network that is not trained
    python benchmarks/diffusion.py --images FOLDER --out TRIAL --small      # everything, tiny, on a CPU in a minute

RECORDS is results/diffusion. FOLDER holds train.npy and unseen.npy: bytes, N x 3 x 32 x 32. Each part trains one U-Net
on so many images and writes one record. Trainings have three lengths: a ninth, a third and the whole. Each length has
the recipe's own schedule, so a short training is not a long one that was interrupted. Subsets are nested: the same
training images are attacked in all of them. 1000b has other images, other first weights and other draws. A part whose
results are saved is skipped.

--budget is for the whole command. The speed of the network is measured first, and training gets the time that the
attacks leave. Layers compute in bfloat16, in training and in attacks. The parts 1000 and 3000-long also time
steps and repeat one attack in full precision, if their time allows it.

The part 10000-longest trains for about 20 minutes on one H200, in a folder beside its record. It may be stopped at any
time: the same command resumes the training, and the attacks follow when it is over.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusion_attacks import (
    ITERATIONS,
    MASKS,
    SEARCHED,
    STEPS,
    Damaged,
    Sets,
    annealed,
    attacked,
    denoiser_of,
    evaluations_a_second,
    evaluations_of_a_checkpoint,
    fast_denoiser_of,
    iterated,
    measure,
    refined,
    step_speeds,
)
from diffusion_training import Trained, learner_for, seconds_a_step, steps_in_all, train_in_folder, train_lengths
from reporting import check_writable, input_errors_end_it

from recollect.devices.precision import choose_device
from recollect.diffusion import Denoiser, DenoiserRecipe
from recollect.diffusion.learning import Learner
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind
from recollect.methods.refined import BUDGET_FACTOR
from recollect.paper.origin import origin
from recollect.records import plain, read_json, write_json

MARGIN = 1.15  # of the time that attacks need by the network's speed: they do more than call it
A_CHECKPOINT = 5.0  # seconds besides evaluations: captures and comparisons
LEAST_TRAINING = 0.3  # of a part's time


@dataclass(frozen=True)
class Part:
    """One training: how many images, the seed of everything, and its share of the time."""

    images: int
    seed: int
    seconds: float
    timed: bool = False
    steps: int | None = None  # of the longest training, whatever the command says
    lengths: tuple[float, ...] | None = None
    resumable: bool = False  # trains in a folder beside the record, for longer than one command may take


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    parts: dict[str, Part]
    scored: int = 100  # training images that are attacked
    unseen: int = 300  # after the longest training
    unseen_shorter: int = 64  # after shorter ones
    left_out: int = 24  # of each set, on which settings are chosen
    rounds: int = 6  # of blind
    samples: int = 2048
    lengths: tuple[float, ...] = (1 / 9, 1 / 3, 1.0)
    steps: int | None = None  # of the longest training; default: what the time allows
    timed_steps: int = 20
    timing: float = 60.0  # seconds, with the kernels that are compiled
    timed_batches: tuple[int, ...] = (64, 256)
    pixels: int = 32
    recipe: dict[str, Any] = field(default_factory=dict)


FULL = Scale({
    "100": Part(100, 42, 90),
    "300": Part(300, 42, 105),
    "1000": Part(1000, 42, 200, timed=True),
    "1000b": Part(1000, 43, 150),
    "3000": Part(3000, 42, 155),
    "10000": Part(10_000, 42, 150),
    "3000-long": Part(3000, 42, 480, timed=True, steps=11_184, lengths=(1.0,)),  # as many epochs as 1000 has
    "10000-long": Part(10_000, 42, 520, steps=12_427, lengths=(1.0,)),  # as many epochs as 3000 has
    "10000-longest": Part(10_000, 42, 1300, steps=37_281, resumable=True),  # as many epochs as 3000-long has
})  # fmt: skip
SMALL = Scale(
    {
        "12": Part(12, 42, 25, timed=True), "40": Part(40, 42, 25),
        "40-longest": Part(40, 42, 25, steps=4, resumable=True),
    },
    scored=4, unseen=4, unseen_shorter=2, left_out=2, rounds=1, samples=4, steps=30, timed_steps=2, timing=5.0,
    timed_batches=(2, 4), lengths=(1 / 3, 1.0), pixels=8,
    recipe={"settings": {"widths": (16, 32)}, "batch": 8},
)  # fmt: skip


@dataclass
class Clock:
    """The time that is left."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.began)


def main(arguments: Sequence[str] | None = None) -> None:
    with input_errors_end_it():
        run(parse(arguments))


def run(options: argparse.Namespace) -> None:
    scale = scale_of(options)
    device = choose_device(options.device)
    if options.speed:
        time_steps(scale, device, options.out / "speed.json")
    elif options.images is None:
        raise InputError("--images FOLDER is needed, unless steps alone are timed (--speed).")
    else:
        run_parts(options, scale, device)


def run_parts(options: argparse.Namespace, scale: Scale, device: torch.device) -> None:
    paths = {name: options.out / f"diffusion-{name}.json" for name in chosen_parts(options.only, scale)}
    check_writable(*paths.values())
    missing = {name: scale.parts[name] for name, path in paths.items() if not is_complete(path)}
    train, unseen = (read_images(options.images / f"{which}.npy", scale.pixels) for which in ("train", "unseen"))
    remaining = sum(part.seconds for part in missing.values())
    clock = Clock(options.budget or 60.0 + remaining)
    if missing:
        speeds(learner_for(train[:1], DenoiserRecipe(**scale.recipe), device), scale)  # compiles on a GPU
    for name, part in missing.items():
        seconds = clock.left * part.seconds / remaining
        PartRun(name, scale, train, unseen, device, clock, seconds, paths[name]).run()
        remaining -= part.seconds
    print(f"all done, {clock.left:.0f} s left", flush=True)


def time_steps(scale: Scale, device: torch.device, path: Path) -> None:
    """Time steps of a network that is not trained, on random images: a step takes as long with any weights."""
    check_writable(path)
    shape = (3, scale.pixels, scale.pixels)
    images = Images(torch.rand(64, *shape, generator=torch.Generator().manual_seed(0)))
    network = DenoiserRecipe(**scale.recipe).make_network(shape).requires_grad_(False).eval().to(device)
    speed = step_speeds(network, Damaged.of({"train": images}, MASKS, device), 0.2, 0.5, scale.timed_batches)
    write_json(path, {"speed": speed, "parameters": sum(w.numel() for w in network.parameters()), **origin(device)})
    for precision, rows in speed.items():
        for row in rows:
            print(f"{precision}, batch {row['batch']}, annealed: {row['annealed']}: {row['ratio']}", flush=True)


def scale_of(options: argparse.Namespace) -> Scale:
    scale = SMALL if options.small else FULL
    given = {name: getattr(options, name) for name in ("rounds", "unseen", "steps")}
    return replace(scale, **{name: value for name, value in given.items() if value is not None})


def chosen_parts(only: str | None, scale: Scale) -> list[str]:
    chosen = list(scale.parts) if only is None else only.split(",")
    if unknown := [name for name in chosen if name not in scale.parts]:
        raise InputError(f"There is no part {unknown[0]!r}; choose from {', '.join(scale.parts)}.")
    return chosen


def is_complete(path: Path) -> bool:
    return path.exists() and bool(read_json(path).get("complete"))


def read_images(path: Path, pixels: int) -> Images:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    step = values.shape[-1] // pixels
    return Images.from_uint8(torch.from_numpy(np.ascontiguousarray(values[..., ::step, ::step])), name=path.stem)


class PartRun:
    """Train on one subset, attack every length, and write the record as it grows."""

    def __init__(
        self, name: str, scale: Scale, train: Images, unseen: Images, device: torch.device, clock: Clock,
        seconds: float, path: Path,
    ) -> None:  # fmt: skip
        part = scale.parts[name]
        order = np.random.default_rng(part.seed).permutation(len(train))
        self.name, self.part, self.scale, self.device, self.path = name, part, scale, device, path
        self.train = train[order[: part.images].tolist()]
        scored = min(scale.scored, part.images - min(scale.left_out, part.images // 6))  # some are left out of it
        self.sets = Sets(
            {"train": self.train[:scored], "unseen": unseen[: scale.unseen]},
            {
                "train": self.train[scored : scored + scale.left_out],
                "unseen": unseen[scale.unseen : scale.unseen + scale.left_out],
            },
        )
        self.all_time, self.time = clock, Clock(seconds)
        self.recipe = DenoiserRecipe(seed=part.seed, **scale.recipe)
        self.record: dict[str, Any] = {
            "part": name, "images": part.images, "images_hash": self.train.hash, "seed": part.seed,
            "unseen_hash": unseen.hash, "scored": {which: len(own) for which, own in self.sets.scored.items()},
            "left_out": {which: len(own) for which, own in self.sets.left_out.items()}, "masks": list(MASKS),
            "rounds": scale.rounds, "steps_a_round": STEPS,
            "precision": "bfloat16" if device.type == "cuda" else "float32", "recipe": plain(self.recipe),
            "checkpoints": [], "complete": False, **origin(device),
        }  # fmt: skip

    def run(self) -> None:
        self.say(f"{self.part.images} images, {self.time.left:.0f} s")
        if self.time.left <= 0:
            self.say("no time for this part")
            return
        trained = self.trained()
        longest = fast_denoiser_of(trained[-1].network)
        for one in reversed(trained):
            if self.all_time.left < 0.6 * self.seconds_of_attacks(one is trained[-1]):
                self.say(f"no time for the attacks after {one.steps} steps")
                self.write()
                return
            self.measured(one, longest if one is trained[-1] else fast_denoiser_of(one.network), one is trained[-1])
        if self.part.timed:
            self.extra("speed", self.scale.timing, lambda: self.timed(trained[-1]))
        self.extras(longest)
        self.record["complete"] = True
        self.write()
        self.say(f"done, {self.time.left:.0f} s of its time left")

    def trained(self) -> list[Trained]:
        """Train for the time that the attacks leave."""
        learner = learner_for(self.train, self.recipe, self.device)
        a_step, self.speed = speeds(learner, self.scale)
        self.record |= {"parameters": sum(w.numel() for w in learner.weights), "evaluations_a_second": self.speed}
        if self.part.resumable and self.part.steps:
            return [train_in_folder(self.train, self.path.with_suffix(""), self.part.steps, self.recipe, self.device)]
        shorter = len(self.part.lengths or self.scale.lengths) - 1
        attacks = self.seconds_of_attacks(True) + shorter * self.seconds_of_attacks(False)
        attacks += self.seconds_of_extras() + (self.scale.timing if self.part.timed else 0)
        seconds = max(self.time.left - attacks, LEAST_TRAINING * self.time.seconds)
        planned = self.part.steps or self.scale.steps
        longest = planned or int(seconds / a_step / steps_in_all(self.lengths(10_000)) * 10_000)
        lengths = self.lengths(longest)
        steps = steps_in_all(lengths)
        self.say(
            f"{1000 * a_step:.1f} ms a step, {self.speed:.0f} evaluations/s; trains {steps} steps in "
            f"{steps * a_step:.0f} s, attacks take {attacks:.0f} s"
        )
        trained = train_lengths(learner, lengths)
        for one in trained:
            self.say(f"{one.steps} steps, {one.epochs:.0f} epochs, {one.seconds:.0f} s, loss {one.loss:.4f}")
        return trained

    def lengths(self, longest: int) -> list[int]:
        return [max(2, round(share * longest)) for share in self.part.lengths or self.scale.lengths]

    def seconds_of_attacks(self, after_longest: bool) -> float:
        """Plan the time of the attacks on one network."""
        unseen = self.scale.unseen if after_longest else self.scale.unseen_shorter
        sizes = (unseen, self.scale.left_out, self.scale.rounds, self.scale.samples)
        return MARGIN * evaluations_of_a_checkpoint(self.scale.scored, *sizes) / self.speed + A_CHECKPOINT

    def rows(self, masks: Sequence[str] = MASKS) -> int:
        return len(masks) * (self.scale.scored + self.scale.unseen_shorter)

    def seconds_of_extras(self) -> float:
        """Plan the time of the annealed variant and of iterating."""
        return MARGIN * self.rows() * (STEPS * (self.scale.rounds + 1) + ITERATIONS) / self.speed

    def measured(self, one: Trained, denoiser: Denoiser, is_longest: bool) -> None:
        sets = self.sets if is_longest else self.sets.fewer_unseen(self.scale.unseen_shorter)
        found, pictures = measure(denoiser, self.train, sets, rounds=self.scale.rounds, samples=self.scale.samples)
        training = {"steps": one.steps, "epochs": one.epochs, "seconds": one.seconds, "training_loss": one.loss}
        self.record["checkpoints"].insert(0, {**training, **found})
        self.write()
        if is_longest:
            arrays: dict[str, Any] = {name: values.numpy() for name, values in pictures.items()}
            np.savez_compressed(self.path.with_suffix(".npz"), **arrays)
        self.say(summary(one, found))

    def extras(self, denoiser: Denoiser) -> None:
        """Run what is asked of the longest training alone, as long as there is time."""
        sets, last = self.sets.fewer_unseen(self.scale.unseen_shorter), self.record["checkpoints"][-1]
        sigma, gamma, rounds = last["noise_level"], last["gamma"], self.scale.rounds
        damaged = Damaged.of(sets.scored, MASKS, self.device)
        of_two = Damaged.of(sets.scored, SEARCHED, self.device)
        a_row = 1 / self.speed
        self.extra(
            "annealed", a_row * len(damaged.y) * STEPS * (rounds + 1),
            lambda: annealed(denoiser, damaged, gamma, rounds),
        )  # fmt: skip
        self.extra("iterate", a_row * len(damaged.y) * ITERATIONS, lambda: iterated(denoiser, damaged, sigma))
        passes = BUDGET_FACTOR * rounds * STEPS + 500  # and some iterations
        self.extra("refined", a_row * len(of_two.y) * passes, lambda: refined(denoiser, of_two, sigma, gamma, rounds))

    def extra(self, name: str, seconds: float, measure: Callable[[], Any]) -> None:
        """Measure one thing more, unless there is no time; a failure of it must not cost the others."""
        if self.time.left < seconds:
            self.say(f"no time for {name} ({seconds:.0f} s)")
            return
        began = time.monotonic()
        try:
            self.record[name] = measure()
        except (RuntimeError, InputError) as error:
            self.say(f"{name} failed: {error}")
            return
        self.write()
        self.say(f"{name}: {time.monotonic() - began:.1f} s (planned {seconds:.0f})")

    def timed(self, one: Trained) -> dict[str, Any]:
        """Time steps against the network, in bfloat16 and in full precision, where one attack is repeated."""
        last = self.record["checkpoints"][-1]
        sigma, gamma = last["noise_level"], last["gamma"]
        train = {"train": self.sets.scored["train"]}
        damaged = Damaged.of(train, MASKS, self.device)
        times = step_speeds(one.network, damaged, sigma, gamma, self.scale.timed_batches)
        times["blind in float32"], _ = attacked(
            Blind(gamma, STEPS, self.scale.rounds), denoiser_of(one.network).at(sigma),
            Damaged.of(train, ("block",), self.device),
        )  # fmt: skip
        return times

    def write(self) -> None:
        write_json(self.path, self.record)

    def say(self, text: str) -> None:
        print(f"[{self.all_time.seconds - self.all_time.left:6.1f} s] {self.name}: {text}", flush=True)


def speeds(learner: Learner, scale: Scale) -> tuple[float, float]:
    """Measure the seconds of a training step and the evaluations a second of an attack."""
    batch = 512 if learner.images.is_cuda else 8
    a_step = seconds_a_step(learner, scale.timed_steps)
    return a_step, evaluations_a_second(fast_denoiser_of(learner.averaged_network()), batch)


def summary(one: Trained, found: dict[str, Any]) -> str:
    """One line of what was found after a training."""
    blind, extraction = found["attacks"]["blind"], found["extraction"]
    shares = " ".join(f"{own['train']['recovered']}/{own['train']['total']}" for own in blind.values())
    unseen = sum(own["unseen"]["recovered"] for own in blind.values())
    aucs = " ".join(f"{own['membership']['auc']:.2f}" for own in blind.values())
    others = ", ".join(
        f"{name} {max(row['auc'] for row in own['levels']):.2f}" for name, own in found["membership"].items()
    )
    return (
        f"after {one.epochs:.0f} epochs, sigma {found['noise_level']}, gamma {found['gamma']}: blind {shares}, "
        f"unseen {unseen}; AUC {aucs} ({others}); {extraction['distinct']['approximate']} of "
        f"{extraction['samples']} samples' images, {extraction['distinct']['patches']} by patches; "
        f"took {found['took_seconds']}"
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="folder with train.npy and unseen.npy")
    parser.add_argument("--out", type=Path, required=True, help="folder for the records")
    parser.add_argument("--only", help="parts, separated by commas; default: all")
    parser.add_argument("--budget", type=float, help="seconds for the whole command")
    parser.add_argument("--rounds", type=int, help=f"of blind; default: {FULL.rounds}")
    parser.add_argument("--steps", type=int, help="of the longest training; default: what the time allows")
    parser.add_argument("--unseen", type=int, help=f"images, after the longest training; default: {FULL.unseen}")
    parser.add_argument("--speed", action="store_true", help="only time steps, of a network that is not trained")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try everything on a CPU")
    parser.add_argument("--device", help="default: CUDA if available")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
