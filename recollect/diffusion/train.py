"""Train a denoiser for a given time or number of steps: resumable, and every file on disk is whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.checkpoints import read_tensors, write_tensors
from recollect.counting import counted
from recollect.devices.precision import choose_device
from recollect.diffusion.card import Card
from recollect.diffusion.denoiser import Denoiser
from recollect.diffusion.learning import Learner
from recollect.diffusion.opening import open_denoiser
from recollect.diffusion.own import write_own
from recollect.diffusion.recipe import DenoiserRecipe
from recollect.diffusion.samples import write_sheet
from recollect.diffusion.sampling import sample
from recollect.errors import InputError, is_number, is_whole
from recollect.files.locks import lock_folder
from recollect.images import Images
from recollect.interruption import signals_held
from recollect.records import plain, provenance

STATE, SAMPLES = "training-state.safetensors", "samples.png"
STATE_FORMAT = "recollect-denoiser-training-1"
REPORTED_EVERY, SAVED_EVERY = 10.0, 60.0  # seconds
CHECKED_EVERY = 8  # steps after which the clock is read: a GPU must not wait for the host at every one
FEW_STEPS = 500  # below which the user is warned
LONG_SECONDS, LONG_STEPS = 600.0, 10_000  # of trainings on a GPU that gain more than the minute of compiling costs

Report = Callable[[str], None]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Limits:
    """When a training is over: by its time, by its steps, or by whichever comes first."""

    max_seconds: float | None
    max_steps: int | None

    def __post_init__(self) -> None:
        if self.max_seconds is None and self.max_steps is None:
            raise InputError("A training needs an end: give max_seconds or max_steps.")
        if self.max_seconds is not None and not (is_number(self.max_seconds) and self.max_seconds > 0):
            raise InputError(f"max_seconds is the time to train for, in seconds; got {self.max_seconds!r}.")
        if self.max_steps is not None and not is_whole(self.max_steps, 1):
            raise InputError(f"max_steps is a number of steps, 1 or more; got {self.max_steps!r}.")

    @property
    def are_long(self) -> bool:
        """Say whether compiling the network pays in this time and number of steps."""
        seconds = LONG_SECONDS if self.max_seconds is None else self.max_seconds
        steps = LONG_STEPS if self.max_steps is None else self.max_steps
        return seconds >= LONG_SECONDS and steps >= LONG_STEPS

    def part_done(self, learner: Learner) -> float:
        """Compute how much of the training is over, from 0 to 1 and beyond."""
        by_time = learner.seconds / self.max_seconds if self.max_seconds else 0.0
        by_steps = learner.steps / self.max_steps if self.max_steps else 0.0
        return max(by_time, by_steps)

    def steps_before_check(self, learner: Learner) -> int:
        """Count the steps until the clock is read again; a limit of steps is met exactly."""
        most = CHECKED_EVERY if learner.images.is_cuda else 1
        return most if self.max_steps is None else min(most, self.max_steps - learner.steps)


def train_denoiser(
    images: Images,
    out: str | Path,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    recipe: DenoiserRecipe | None = None,
    device: torch.device | str | None = None,
    about: str = "",
    samples: int = 64,
    report: Report | None = None,
    clock: Clock = time.monotonic,
) -> Denoiser:
    """Train a denoiser, earlier runs in the same folder included, and open the result.

    The folder is then one that `open_denoiser` takes: a network, and a card that describes the training images. With
    `max_steps` alone a training that was stopped and resumed gives the same weights on a CPU, bit for bit, as one that
    was not.

    Args:
        images: The training images.
        out: Folder for the denoiser. The same call resumes a run there.
        max_seconds: How long to train in all.
        max_steps: How many steps to train in all.
        recipe: Network, noise levels and steps. Defaults to `DenoiserRecipe.for_size`.
        device: Where to train. Defaults to CUDA if available.
        about: A description of the images, for the card.
        samples: How many images are sampled from the result and drawn.
        report: Called with a sentence now and then.
        clock: Gives the time in seconds.

    Returns:
        The denoiser.

    Examples:
        >>> import recollect
        >>> from recollect.diffusion import DenoiserRecipe, train_denoiser
        >>> images = recollect.load("photos?count=4&size=8")
        >>> recipe = DenoiserRecipe(network="residual", settings={"width": 16, "blocks": 1}, batch=4)
        >>> train_denoiser(images, "my-denoiser", max_steps=2, recipe=recipe, device="cpu", samples=1).shape
        (3, 8, 8)
    """
    out, report, limits = Path(out), report or _silent, Limits(max_seconds, max_steps)
    device = choose_device(device)
    recipe = recipe or DenoiserRecipe.for_size(max(images.image_shape[1:]), device)
    compiles = device.type == "cuda" and limits.are_long
    learner = Learner(recipe.make_network(images.image_shape), eight_bit(images).to(device), recipe, compiles=compiles)
    identity = {"recipe": plain(recipe), "images": images.hash}
    if compiles:
        report("The network is compiled first, which takes about a minute.")
    with lock_folder(out):
        _resume(learner, out / STATE, identity, report)
        if limits.part_done(learner) >= 1:
            report("This training is over already: give it more time or steps to train it further.")
        _learn(learner, limits, out / STATE, identity, report, clock)
        return _write_denoiser(learner, images, about, samples, out, report)


def _write_denoiser(learner: Learner, images: Images, about: str, samples: int, out: Path, report: Report) -> Denoiser:
    """Write the network, its card and samples, and open the result."""
    write_own(out, learner.averaged_network())
    _write_card(learner, images, about, out)
    denoiser = open_denoiser(out, device=learner.images.device)
    if learner.steps < FEW_STEPS:
        report(f"Training ended after {counted(learner.steps, 'step')}, and a denoiser needs thousands of steps.")
    if samples:
        _write_samples(denoiser, samples, out / SAMPLES, report)
    return denoiser


def _write_samples(denoiser: Denoiser, samples: int, path: Path, report: Report) -> None:
    write_sheet(path, sample(denoiser, samples))
    report(f"{samples} samples: {path}")


def eight_bit(images: Images) -> Tensor:
    """Take the pixels as 0..255, a slice at a time to spare memory."""
    slices = range(0, len(images), 4096)
    return torch.cat([(images[s : s + 4096].pixels * 255).round().byte() for s in slices])


def _silent(_line: str) -> None:
    """Drop lines that nobody asked for."""


def _learn(
    learner: Learner, limits: Limits, path: Path, identity: dict[str, Any], report: Report, clock: Clock
) -> None:
    """Take steps until the training is over, at least one; save every minute, and when the user interrupts.

    A signal is handled between two steps: what is saved in the middle of one could not be resumed to the same weights.
    """
    began = clock() - learner.seconds
    reported = saved = learner.seconds
    reported_at = learner.steps
    with signals_held() as signals:
        while limits.part_done(learner) < 1 or not learner.steps:
            _take_steps(learner, limits)
            learner.seconds = clock() - began
            saves = limits.part_done(learner) >= 1 or learner.seconds - saved > SAVED_EVERY
            if saves or learner.seconds - reported > REPORTED_EVERY:
                _report(learner, learner.steps - reported_at, reported, report)
                reported, reported_at = learner.seconds, learner.steps
            if saves:
                _save(path, identity, learner)
                saved = learner.seconds
            try:
                signals.release()
            except KeyboardInterrupt:
                if learner.steps == reported_at or learner.take_loss(1) < float("inf"):
                    _save(path, identity, learner)
                raise


def _take_steps(learner: Learner, limits: Limits) -> None:
    """Take the steps until the clock is read again, and wait for them."""
    for _ in range(limits.steps_before_check(learner)):
        learner.step(limits.part_done(learner))
    if learner.images.is_cuda:
        torch.cuda.synchronize(learner.images.device)


def _report(learner: Learner, steps: int, since: float, report: Report) -> None:
    """Report the mean loss of the last steps; one that is not finite ends the training before it is saved."""
    loss = learner.take_loss(steps)
    speed = steps * learner.recipe.batch / max(1e-9, learner.seconds - since)
    report(f"{learner.seconds:6.0f} s  step {learner.steps:6}  loss {loss:.5f}  {speed:.0f} images/s")
    if not loss < float("inf"):
        raise InputError("The training diverged: the loss is not finite. Try a smaller rate.")


def _save(path: Path, identity: dict[str, Any], learner: Learner) -> None:
    tensors, values = learner.state()
    write_tensors(path, tensors, {"format": STATE_FORMAT, "values": json.dumps(identity | values)})


def _resume(learner: Learner, path: Path, identity: dict[str, Any], report: Report) -> None:
    if not path.exists():
        return
    tensors, metadata = read_tensors(path, learner.images.device)
    if metadata.get("format") != STATE_FORMAT:
        raise InputError(f"{path} is not the state of a denoiser's training that this version of recollect can resume.")
    values = json.loads(metadata["values"])
    if any(values[name] != value for name, value in identity.items()):
        raise InputError(f"{path} is of another training (other images or settings); give another folder.")
    learner.restore(tensors, values)
    report(f"resuming after step {learner.steps}, {learner.seconds:.0f} s")


def _write_card(learner: Learner, images: Images, about: str, out: Path) -> None:
    facts = {"recipe": asdict(learner.recipe), "steps": learner.steps, "seconds": round(learner.seconds, 1)}
    Card.of(images, about, facts | provenance(learner.images.device)).write(out)
