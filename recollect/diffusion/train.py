"""Training a prior of our own in a given time: resumable, and every file on disk is whole."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect.devices.precision import choose_device, device_of
from recollect.diffusion.card import Card
from recollect.diffusion.learning import Learner, PriorRecipe
from recollect.diffusion.network import make_network, make_scheduler
from recollect.diffusion.opening import open_prior
from recollect.diffusion.prior import Prior
from recollect.diffusion.samples import draw_samples, write_sheet
from recollect.errors import InputError
from recollect.images import Images
from recollect.records import atomically, plain, provenance

STATE, SAMPLES = "training.pt", "samples.png"
REPORTED_EVERY, SAVED_EVERY = 10.0, 60.0  # seconds
WORTH_COMPILING = 300.0  # seconds of training: compiling takes one or two minutes
FEW = 500  # steps

Report = Callable[[str], None]


def train_prior(
    images: Images,
    out: str | Path,
    *,
    max_seconds: float,
    recipe: PriorRecipe | None = None,
    device: torch.device | str | None = None,
    about: str = "",
    samples: int = 64,
    report: Report | None = None,
) -> Prior:
    """Train for `max_seconds` in all, earlier runs in the same folder included, and open what was made.

    The folder is then one that `open_prior` takes: network, schedule, and a card that says what it was trained on,
    in the words of `about`.
    """
    out, report = Path(out), report or _silent
    if not max_seconds > 0:
        raise InputError(f"max_seconds is the time to train for, in seconds; got {max_seconds}.")
    channels, height, width = images.shape
    if height != width:
        raise InputError(f"A prior is trained on square images; these are {width}x{height}.")
    device = choose_device(device)
    recipe = recipe or PriorRecipe.for_size(height, device)
    scheduler = make_scheduler(recipe.schedule)
    network = make_network(channels, height, recipe.widths, recipe.seed)
    learner = Learner(network, scheduler.alphas_cumprod, eight_bit(images).to(device), recipe)
    identity = {"recipe": plain(recipe), "images": images.hash}
    _resume(learner, out / STATE, identity, report)
    if learner.seconds >= max_seconds:
        report(f"It has had its {max_seconds:g} s already: give it more to train it further.")
    if device.type == "cuda" and max_seconds - learner.seconds > WORTH_COMPILING:
        _compile(learner, report)
    _learn(learner, max_seconds, out / STATE, identity, report)
    _export(learner, scheduler, images, out)
    _write_card(learner, images, about, out)
    prior = open_prior(out, device=device)
    if learner.steps < FEW:
        report(
            f"Only {learner.steps} steps were made, and a prior knows little before some thousands: give it more time."
        )
    if samples:
        _write_samples(prior, samples, out / SAMPLES, report)
    return prior


def _write_samples(prior: Prior, samples: int, path: Path, report: Report) -> None:
    if device_of(prior).type == "cpu":
        samples = min(samples, 16)  # 100 steps each: minutes on a CPU
    report(f"drawing {samples} samples")
    write_sheet(path, draw_samples(prior, samples))
    report(f"{samples} samples: {path}")


def eight_bit(images: Images) -> Tensor:
    """The pixels in 0..255, a slice at a time to spare memory."""
    slices = range(0, len(images), 4096)
    return torch.cat([(images[s : s + 4096].pixels * 255).round().byte() for s in slices])


def _silent(_line: str) -> None:
    """Lines that nobody asked for."""


def _compile(learner: Learner, report: Report) -> None:
    """Fuse the network's kernels, and check on one batch that this works here; without it all goes on, slower."""
    began, state = time.monotonic(), learner.state()["draws"]
    learner.compile()
    try:
        noisy = torch.randn_like(learner.images[:1].float()).expand(learner.recipe.batch, -1, -1, -1)
        noisy = noisy.contiguous(memory_format=torch.channels_last)
        with torch.autocast(noisy.device.type, torch.bfloat16):
            t = torch.zeros(len(noisy), dtype=torch.long, device=noisy.device)
            learner.predict(noisy, t, return_dict=False)[0].float().square().mean().backward()
        torch.cuda.synchronize()
    except Exception as error:  # no compiler on this machine, or one that meets what it cannot do
        learner.predict = learner.network
        report(f"running without fused kernels: {(str(error).splitlines() or [type(error).__name__])[0][:200]}")
    learner.optimizer.zero_grad(set_to_none=True)
    learner.draws.set_state(state)
    learner.seconds += time.monotonic() - began
    report(f"compiled in {time.monotonic() - began:.0f} s")


def _learn(learner: Learner, max_seconds: float, path: Path, identity: dict[str, Any], report: Report) -> None:
    """Take steps until the time is over, at least one; save every minute, and when the user interrupts."""
    began = time.monotonic() - learner.seconds
    reported = saved = learner.seconds
    losses: list[Tensor] = []
    try:
        while learner.seconds < max_seconds or not learner.steps:
            losses.append(learner.step(learner.seconds / max_seconds))
            learner.seconds = time.monotonic() - began
            saves = learner.seconds >= max_seconds or learner.seconds - saved > SAVED_EVERY
            if saves or learner.seconds - reported > REPORTED_EVERY:
                _report(learner, losses, reported, report)
                learner.seconds = time.monotonic() - began  # reading the loss waited for the device
                reported, losses = learner.seconds, []
            if saves:
                _save(path, {**identity, **learner.state()})
                saved = learner.seconds
    except KeyboardInterrupt:
        if learner.steps and _all_finite(losses):
            _save(path, {**identity, **learner.state()})
        raise


def _all_finite(losses: list[Tensor]) -> bool:
    return all(bool(torch.isfinite(loss)) for loss in losses)


def _report(learner: Learner, losses: list[Tensor], since: float, report: Report) -> None:
    """The mean loss of the last steps; one that is not finite ends the training before it is saved."""
    loss = float(torch.stack(losses).mean())
    speed = len(losses) * learner.recipe.batch / max(1e-9, learner.seconds - since)
    report(f"{learner.seconds:6.0f} s  step {learner.steps:6}  loss {loss:.5f}  {speed:.0f} images/s")
    if not loss < float("inf"):
        raise InputError("The training diverged: the loss is not finite. Try a smaller rate.")


def _save(path: Path, state: dict[str, Any]) -> None:
    with atomically(path) as file:
        torch.save(state, file)


def _resume(learner: Learner, path: Path, identity: dict[str, Any], report: Report) -> None:
    if not path.exists():
        return
    try:
        state = torch.load(path, map_location=learner.images.device, weights_only=True)
        same = {key: state.pop(key) for key in identity} == identity
    except Exception as error:  # torch.load has many ways to refuse a damaged file
        raise InputError(f"{path} cannot be read as a training to go on with: {type(error).__name__}.") from None
    if not same:
        raise InputError(f"{path} is of another training (other images or settings); give another folder.")
    learner.restore(state)
    report(f"going on after step {learner.steps}, {learner.seconds:.0f} s")


def _export(learner: Learner, scheduler: Any, images: Images, out: Path) -> None:
    """The averaged weights in half precision and the schedule, as diffusers writes them."""
    with tempfile.TemporaryDirectory(dir=out, prefix=".export") as folder:
        half = make_network(images.shape[0], images.shape[1], learner.recipe.widths)
        half.load_state_dict(learner.averaged.state_dict())
        half.half().save_pretrained(folder)
        scheduler.save_pretrained(folder)
        usual = (Path(folder) / "config.json").stat().st_mode
        for file in sorted(Path(folder).iterdir()):
            file.chmod(usual)  # weights are written for their owner alone
            file.replace(out / file.name)


def _write_card(learner: Learner, images: Images, about: str, out: Path) -> None:
    facts = {"recipe": asdict(learner.recipe), "steps": learner.steps, "seconds": round(learner.seconds, 1)}
    Card.of(images, about, facts | provenance(learner.images.device)).write(out)
