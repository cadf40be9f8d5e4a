"""Attacks on one denoiser: recovery, membership and generate-and-filter on the same images, with their costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from timing import quickest_call, timed
from torch import Tensor, nn
from torch.nn import functional

from recollect.attractors import fixed_point_error
from recollect.auditing.membership import membership
from recollect.auditing.noise_levels import LEVELS
from recollect.degradation import Erasure, half_kept, mask, observe
from recollect.devices.precision import device_of, evaluation_mode
from recollect.diffusion import Denoiser, DenoiserAt
from recollect.diffusion.denoiser import AnnealedDenoiser, Predict, call
from recollect.diffusion.learning import compiled_call
from recollect.diffusion.membership import denoising_loss, secmi
from recollect.diffusion.networks import DenoisingNetwork
from recollect.diffusion.preconditioning import EDM
from recollect.engine.runtime import IN_PYTORCH, Runtime, prepare, without_acceleration
from recollect.extraction import extract
from recollect.images import Images
from recollect.methods import Blind, Iterate, KnownMask, Method, Refined
from recollect.methods.admm import solve
from recollect.recovery import Recovery
from recollect.scoring import APPROXIMATE, mse

MASKS = ("block", "dust", "stripes", "half")
SEARCHED = ("block", "half")  # masks of the search: an easy and a hard one
STEPS = 40  # of ADMM, in a round
SEARCH_ROUNDS = 2  # after which a denoiser's answers hardly change
GAMMA, GAMMAS = 0.5, (0.1, 1.0)  # of the search for the noise level; tried at the best level beside it
LOSS_DRAWS = 4  # of noise, for the loss of an image
SECMI_EVALUATIONS = 12
ANNEALED = (0.5, 0.05)  # noise levels at the first and the last step of an annealed round
ITERATIONS = 100
SAMPLED_AT_ONCE = 512
COMPILED_BATCH = 256


class InBfloat16(nn.Module):
    """A denoising network whose layers compute in bfloat16 on a GPU, as in its training; weights stay float32.

    It is compiled for one batch size: other batches are split, and the last part is filled up.
    """

    def __init__(self, network: DenoisingNetwork, predict: Predict = call) -> None:
        super().__init__()
        self.network, self.settings, self.shape, self.predict = network, network.settings, network.shape, predict

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda, cache_enabled=False):
            if self.predict is call:
                return self.network(x, time).float()
            return torch.cat([self._filled_up(part, time) for part in x.split(COMPILED_BATCH)])

    def _filled_up(self, part: Tensor, time: Tensor) -> Tensor:
        missing = COMPILED_BATCH - len(part)
        batch = functional.pad(part, (0, 0, 0, 0, 0, 0, 0, missing)) if missing else part.contiguous()
        return self.predict(self.network, batch, time)[: len(part)].float()


@dataclass(frozen=True)
class Sets:
    """Training and unseen images that are attacked, and others on which settings are chosen."""

    scored: Mapping[str, Images]
    left_out: Mapping[str, Images]

    def fewer_unseen(self, count: int) -> Sets:
        return Sets({**self.scored, "unseen": self.scored["unseen"][:count]}, self.left_out)


class Errors(NamedTuple):
    """One kind of error at a noise level: a value for each image of each set."""

    sigma: float
    scored: Mapping[str, Tensor]
    left_out: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Damaged:
    """Images of several sets under several masks, in one batch."""

    y: Tensor
    truth: Erasure
    pixels: Tensor
    rows: Mapping[tuple[str, str], slice]  # of a mask and a set

    @classmethod
    def of(cls, sets: Mapping[str, Images], masks: Iterable[str], device: torch.device) -> Damaged:
        parts, rows, count = [], {}, 0
        for name in masks:
            for which, images in sets.items():
                parts.append((observe(images, mask(name, images.shape, count=len(images))), images))
                rows[name, which] = slice(count, count + len(images))
                count += len(images)
        y = torch.cat([seen.y for seen, _ in parts]).to(device)
        truths = [seen.truth.expand(seen.y) for seen, _ in parts]
        keep = torch.cat([truth.keep for truth in truths if isinstance(truth, Erasure)])
        return cls(y, Erasure(keep.to(device)), torch.cat([images.pixels for _, images in parts]), rows)


def denoiser_of(network: DenoisingNetwork | InBfloat16) -> Denoiser:
    return Denoiser(network, EDM(), network.shape, "trained here").eval()


def fast_denoiser_of(network: DenoisingNetwork) -> Denoiser:
    """Take a network in bfloat16, compiled on a GPU."""
    on_gpu = device_of(network).type == "cuda"
    return denoiser_of(InBfloat16(network, compiled_call() if on_gpu else call))


@torch.no_grad()
def evaluations_a_second(denoiser: Denoiser, batch: int) -> float:
    """Measure how many images a second the network denoises."""
    device = device_of(denoiser)
    x = torch.zeros(batch, *denoiser.shape, device=device)
    with evaluation_mode(denoiser):
        denoiser(x, 0.2)
        return batch / min(timed(lambda: denoiser(x, 0.2), device.type)[1] for _ in range(4))


def evaluations_of_a_checkpoint(scored: int, unseen: int, left_out: int, rounds: int, samples: int) -> int:
    """Bound the network evaluations of `measure`, to plan its time."""
    attacked = len(MASKS) * (scored + unseen) * STEPS * (rounds + 1)
    searched = 4 * left_out * STEPS * SEARCH_ROUNDS * (len(LEVELS) + len(GAMMAS))
    told_apart = (scored + unseen + 2 * left_out) * (SECMI_EVALUATIONS + LOSS_DRAWS + 1) * len(LEVELS)
    return attacked + searched + told_apart + 39 * samples


def measure(
    denoiser: Denoiser, train: Images, sets: Sets, *, rounds: int, samples: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Attack a denoiser; return the record, and pictures of a few images: true, damaged, recovered."""
    took: dict[str, float] = {}
    device = device_of(denoiser)
    with clocked(took, "search"):
        search = choose_settings(denoiser, sets, device)
    sigma, gamma = search["noise_level"], search["gamma"]
    f, damaged = denoiser.at(sigma), Damaged.of(sets.scored, MASKS, device)
    attacks = {}
    with clocked(took, "blind"):
        attacks["blind"], blind = attacked(Blind(gamma, STEPS, rounds), f, damaged)
    with clocked(took, "known"):
        attacks["known"], _ = attacked(KnownMask(gamma, STEPS), f, damaged)
    with clocked(took, "membership"):
        errors = errors_by_level(denoiser, sets)
        baselines = membership_baselines(errors)
        charted = charted_levels(search["noise_levels"], errors)
    with clocked(took, "extraction"):
        extraction = extracted(denoiser, train, len(sets.scored["train"]), samples)
    record = {
        **search, "noise_levels": charted, "attacks": attacks, "membership": baselines, "extraction": extraction,
        "took_seconds": {name: round(seconds, 2) for name, seconds in took.items()},
    }  # fmt: skip
    return record, pictures(damaged, blind)


@contextmanager
def clocked(took: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    took[name] = time.monotonic() - began


def recover(method: Method, f: DenoiserAt, damaged: Damaged) -> Recovery:
    """Run a method; on the plain path if the network is compiled, since launches then cost next to nothing."""
    compiled = getattr(f.denoiser.network, "predict", call) is not call
    with without_acceleration() if compiled else nullcontext():
        return method(f, damaged.y, damaged.truth)


def attacked(method: Method, f: DenoiserAt, damaged: Damaged) -> tuple[dict[str, Any], Tensor]:
    """Attack all images; return for each mask the errors, and the membership attack by them; and the estimates."""
    recovery = recover(method, f, damaged)
    return by_mask(recovery.estimate, damaged, recovery.steps), recovery.estimate


def by_mask(estimate: Tensor, damaged: Damaged, steps: Tensor) -> dict[str, Any]:
    errors, evaluations = mse(estimate.cpu(), damaged.pixels), steps.cpu()
    found: dict[str, Any] = {}
    for (mask_name, which), rows in damaged.rows.items():
        found.setdefault(mask_name, {})[which] = {
            "recovered": int((errors[rows] < APPROXIMATE).sum()),
            "total": rows.stop - rows.start,
            "median_mse": rounded(float(errors[rows].median())),
            "evaluations_an_image": rounded(float(evaluations[rows].double().mean()), 4),
            "mse": [rounded(float(error)) for error in errors[rows]],
        }
    for mask_name, own in found.items():
        if "unseen" in own:
            train, unseen = (errors[damaged.rows[mask_name, which]] for which in ("train", "unseen"))
            own["membership"] = told_apart(train, unseen)
    return found


def told_apart(train: Tensor, unseen: Tensor) -> dict[str, Any]:
    """Describe the membership attack by an error, without its curve."""
    described = vars(membership(train.tolist(), unseen.tolist()))
    return {name: rounded(value, 4) for name, value in described.items() if name != "roc"}


def choose_settings(denoiser: Denoiser, sets: Sets, device: torch.device) -> dict[str, Any]:
    """Search the noise level, then gamma, by what blind recovers of training images that are left out of the score."""
    damaged = Damaged.of(sets.left_out, SEARCHED, device)
    levels = [tried(denoiser, sigma, GAMMA, damaged) for sigma in LEVELS]
    sigma = best_of(levels)["sigma"]
    gammas = [tried(denoiser, sigma, gamma, damaged) for gamma in GAMMAS]
    gammas.append(best_of(levels))
    return {"noise_level": sigma, "gamma": best_of(gammas)["gamma"], "noise_levels": levels, "gammas": gammas}


def tried(denoiser: Denoiser, sigma: float, gamma: float, damaged: Damaged) -> dict[str, Any]:
    found, _ = attacked(Blind(gamma, STEPS, SEARCH_ROUNDS), denoiser.at(sigma), damaged)
    for own in found.values():
        own.pop("membership", None)
        for part in own.values():
            part.pop("mse")
    return {"sigma": sigma, "gamma": gamma, "blind": found}


def best_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Take the setting that recovers most, of equals the one with the lowest errors."""

    def merit(row: dict[str, Any]) -> tuple[int, float]:
        train = [own["train"] for own in row["blind"].values()]
        return sum(part["recovered"] for part in train), -sum(np.log(part["median_mse"]) for part in train)

    return max(rows, key=merit)


def errors_by_level(denoiser: Denoiser, sets: Sets) -> dict[str, list[Errors]]:
    """Compute the three errors of every image that need no damaged copy, at each noise level."""

    def of(kind: str, images: Mapping[str, Images], sigma: float) -> dict[str, Tensor]:
        return {which: KINDS_OF_ERROR[kind](denoiser, own, sigma) for which, own in images.items()}

    return {
        kind: [Errors(sigma, of(kind, sets.scored, sigma), of(kind, sets.left_out, sigma)) for sigma in LEVELS]
        for kind in KINDS_OF_ERROR
    }


def losses(denoiser: Denoiser, images: Images, sigma: float) -> Tensor:
    return denoising_loss(denoiser, images, sigma, draws=LOSS_DRAWS)


def fixed_point_errors(denoiser: Denoiser, images: Images, sigma: float) -> Tensor:
    return fixed_point_error(denoiser.at(sigma), images.pixels.to(device_of(denoiser))).cpu()


KINDS_OF_ERROR: Mapping[str, Callable[[Denoiser, Images, float], Tensor]] = {
    "loss": losses, "secmi": secmi, "fixed_point": fixed_point_errors
}  # fmt: skip


def charted_levels(levels: list[dict[str, Any]], errors: Mapping[str, list[Errors]]) -> list[dict[str, Any]]:
    """Add the fixed-point error and the denoising loss of the scored images to what was recovered at each level."""
    rows = []
    for level, loss, moved in zip(levels, errors["loss"], errors["fixed_point"], strict=True):
        mean = {which: float(values.mean()) for which, values in loss.scored.items()}
        medians = {which: rounded(float(values.median())) for which, values in moved.scored.items()}
        means = {which: rounded(value, 4) for which, value in mean.items()}
        gap = rounded(mean["unseen"] - mean["train"], 4)
        rows.append({**level, "fixed_point_error": medians, "denoising_loss": means, "loss_gap": gap})
    return rows


def membership_baselines(errors: Mapping[str, list[Errors]]) -> dict[str, Any]:
    """Tell training from unseen images by each error; the noise level is chosen on images left out of the score."""
    found: dict[str, Any] = {}
    for name, levels in errors.items():
        rows = [
            {"sigma": own.sigma, **told_apart(**own.scored), "auc_left_out": told_apart(**own.left_out)["auc"]}
            for own in levels
        ]
        found[name] = {"levels": rows, "chosen": max(rows, key=lambda row: row["auc_left_out"])["sigma"]}
    return found


def extracted(denoiser: Denoiser, train: Images, scored: int, samples: int) -> dict[str, Any]:
    """Generate and filter; `scored_distinct` counts the training images among those that are attacked, too."""
    extraction = extract(denoiser, train, samples=samples, chunk=SAMPLED_AT_ONCE)
    dropped = ("captures", "by_start", "stored")
    found = {key: value for key, value in extraction.to_dict().items() if key not in dropped}
    nearest = extraction.nearest
    found["scored_distinct"] = {
        "approximate": int((nearest.distinct(APPROXIMATE) < scored).sum()), "total": scored,
        "patches": int((nearest.distinct_by_patches(found["thresholds"]["patches"]) < scored).sum()),
    }  # fmt: skip
    found["median_nearest_mse"] = rounded(float(np.median(nearest.mse)))
    return found


def annealed(denoiser: Denoiser, damaged: Damaged, gamma: float, rounds: int) -> dict[str, Any]:
    """Blind and known with a noise level that falls along the steps of ADMM."""
    levels = np.geomspace(*ANNEALED, STEPS).tolist()
    blind = half_kept(damaged.y)
    with torch.no_grad(), evaluation_mode(denoiser):
        for _ in range(rounds):
            x = annealed_round(denoiser, damaged.y, blind, gamma, levels)
            blind = blind.refit(x, damaged.y)
        known = annealed_round(denoiser, damaged.y, damaged.truth, gamma, levels)
    steps = torch.full((len(damaged.y),), STEPS)
    return {
        "levels": list(ANNEALED), "gamma": gamma, "blind": by_mask(x, damaged, rounds * steps),
        "known": by_mask(damaged.truth.paste(known, damaged.y), damaged, steps),
    }  # fmt: skip


def annealed_round(denoiser: Denoiser, y: Tensor, theta: Erasure, gamma: float, levels: Sequence[float]) -> Tensor:
    """ADMM as in `recollect.methods.admm`, with a noise level for each step."""
    v = xi = torch.full_like(y, DenoiserAt.admm_origin)
    u = torch.zeros_like(y)
    for sigma in levels:
        xi = theta.prox(v - u, y, gamma)
        v = denoiser(xi + u, sigma)
        u = u + xi - v
    return xi


def iterated(denoiser: Denoiser, damaged: Damaged, sigma: float) -> dict[str, Any]:
    return attacked(Iterate(limit=ITERATIONS), denoiser.at(sigma), damaged)[0]


def refined(denoiser: Denoiser, damaged: Damaged, sigma: float, gamma: float, rounds: int) -> dict[str, Any]:
    return attacked(Refined(gamma, STEPS, rounds), denoiser.at(sigma), damaged)[0]


def step_against_network(f: DenoiserAt, damaged: Damaged, gamma: float, batches: Sequence[int]) -> list[dict[str, Any]]:
    """Time a round of ADMM, as recovery runs it, beside as many evaluations of the network alone."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        y, theta = damaged.y[:batch].contiguous(), Erasure(damaged.truth.keep[:batch].contiguous())
        with prepare(f, y, len(y)) as runtime:
            a_round = partial(solve, runtime, y, theta, gamma=gamma, steps=STEPS)
            a_round()  # captures the step, where steps are captured
            seconds = min(timed(a_round, y.device.type)[1] for _ in range(4))
            alone = quickest_call(runtime, y)
            arithmetic, is_fused = arithmetic_of(f, runtime), runtime.fused_admm(gamma, STEPS) is not None
        calls = STEPS - is_fused  # the last fused step of a round ends before the network
        rows.append({
            "batch": len(y), "annealed": isinstance(f, AnnealedDenoiser), "arithmetic": arithmetic,
            "seconds_a_round": rounded(seconds, 5), "seconds_of_the_network": rounded(alone, 5),
            "evaluations_a_round": calls, "ratio": rounded(seconds / (calls * alone), 4),
        })  # fmt: skip
    return rows


def arithmetic_of(f: DenoiserAt, runtime: Runtime) -> str:
    """Say how layers are computed: our kernels leave layers under autocast to PyTorch."""
    in_bfloat16 = isinstance(f.denoiser.network, InBfloat16) and runtime.device.type == "cuda"
    return f"bfloat16 {IN_PYTORCH}" if in_bfloat16 else runtime.arithmetic


def step_speeds(
    network: DenoisingNetwork, damaged: Damaged, sigma: float, gamma: float, batches: Sequence[int]
) -> dict[str, Any]:
    """Time steps at a fixed and at a falling noise level, in bfloat16 and in full precision."""
    kinds = {"bfloat16": denoiser_of(InBfloat16(network)), "float32": denoiser_of(network)}
    return {
        name: [
            row
            for annealed in (False, True)
            for row in step_against_network(denoiser.at(sigma, annealed=annealed), damaged, gamma, batches)
        ]
        for name, denoiser in kinds.items()
    }


def pictures(damaged: Damaged, estimate: Tensor, count: int = 4) -> dict[str, Tensor]:
    """The first training images under each mask: true, damaged and recovered, as bytes."""
    shown = {}
    for (mask_name, which), rows in damaged.rows.items():
        if which == "train":
            first = slice(rows.start, rows.start + count)
            triple = torch.stack([damaged.pixels[first], damaged.y[first].cpu(), estimate[first].cpu()])
            shown[mask_name] = (triple.clamp(0, 1) * 255).round().byte()
    return shown


def rounded(value: Any, digits: int = 3) -> Any:
    """Round to significant digits."""
    return value if value is None else float(f"{value:.{digits}g}")
