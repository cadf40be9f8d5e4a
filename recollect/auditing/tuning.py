"""Choose gamma and the start mask: as given, as in the paper, or by a search on images that are then left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from recollect.attractors import fixed_point_error
from recollect.auditing.diffusion_model import at_noise_level, noise_levels_to_try
from recollect.auditing.given_settings import ANNEALED
from recollect.auditing.method_setup import method_for
from recollect.auditing.progress import AuditProgress, no_progress
from recollect.auditing.request import STARTS, AuditRequest
from recollect.auditing.store import Store
from recollect.degradation import Erasure, Observation, Start, degradation, fill_erased, half_kept, observe
from recollect.devices.precision import device_of
from recollect.diffusion import DenoiserAt
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind, Method, Refined
from recollect.networks import Network
from recollect.scoring import Score

GAMMAS = (0.1, 0.3, 0.5, 1.0, 2.0, 3.0)
MASKS = ("block", "dust")
ROUNDS = 25  # of its blind part: a short run tells good settings from bad
DENOISER_MASKS = ("block", "half")  # an easy and a hard one: under easy ones alone many noise levels are equal
DENOISER_GAMMAS = (0.1, 0.5, 1.0)  # at 2 denoisers gave far less in every trial
DENOISER_ROUNDS = 4  # after two rounds a denoiser's answers under these masks hardly change
FEWEST, ENOUGH, MOST = 4, 8, 32  # images that the search takes: a tenth between the last two, but a third at most
FINALISTS = 3  # settings that are then tried on the audit's other masks too
SMALLEST_ERROR = 1e-20  # fixed-point errors below this are alike
CHANCE = 0.03  # rates of few images that differ by so little say hardly which gamma is better

Row = dict[str, Any]  # one setting and what it recovered


@dataclass(frozen=True)
class Setting:
    """What is chosen for a model: how far a method may depart from the damaged image, and its first mask."""

    gamma: float = 0.5
    start: Start = half_kept
    noise_level: float | str | None = None  # of a diffusion model; annealed: falling along ADMM
    otherwise: float | None = None  # the level of an annealed model in calls that are no step of ADMM


@dataclass(frozen=True)
class SearchSpace:
    """The gammas, starts and noise levels to choose from; one of each where nothing is searched."""

    gammas: tuple[float, ...]
    starts: tuple[Start, ...]
    noise_levels: tuple[float | str | None, ...] = (None,)
    rounds: int = ROUNDS

    @property
    def only(self) -> Setting | None:
        """The one setting there is, if there is one."""
        return self.settings[0] if len(self.settings) == 1 else None

    @property
    def settings(self) -> list[Setting]:
        return [Setting(*chosen) for chosen in product(self.gammas, self.starts, self.noise_levels)]

    def attack(self, setting: Setting, paste: bool) -> Method:
        """Choose the attack to try: the strongest, or at many noise levels, which cost more each, the paper's."""
        if setting.noise_level is not None:
            return Blind(setting.gamma, start=setting.start, limit=self.rounds)
        return Refined(setting.gamma, start=setting.start, limit=self.rounds, paste=paste)


@dataclass(frozen=True)
class Tuning:
    """The images that the search took, and what every setting recovered of them."""

    images: list[str]
    masks: list[str]
    tried: list[Row]

    @property
    def best(self) -> Setting:
        """The finalist that recovered most, at a gamma between those that recovered nearly as much.

        An annealed model is otherwise at the best of the other noise levels.
        """
        row = max(self.tried, key=_rank)
        level, otherwise = row.get("noise_level"), None
        gamma = row["gamma"] if level is not None else _gamma_between(self.tried, row)
        if level == ANNEALED:
            fixed = [other for other in self.tried if other["noise_level"] != ANNEALED]
            otherwise = max(fixed, key=_rank)["noise_level"] if fixed else None
        return Setting(gamma, STARTS[row["start"]], level, otherwise)


def _gamma_between(tried: Sequence[Row], best: Row) -> float:
    """Average the gammas of the best finalists on a log scale; a finalist counts less the less it recovered.

    On few images neighbouring gammas differ by chance. Where nothing was recovered, the best one stands alone.
    """
    alike = [row for row in tried if (row["masks"], row["start"]) == (best["masks"], best["start"])]
    finalists = sorted(alike, key=_rank, reverse=True)[:FINALISTS]
    if len(finalists) == 1 or not best["approximate"]:
        return float(best["gamma"])
    losses = [sum(max(0.0, best[rate] - row[rate]) for rate in ("accurate", "approximate")) for row in finalists]
    weights = [math.exp(-loss / CHANCE) for loss in losses]
    logs = [math.log(row["gamma"]) for row in finalists]
    mean = sum(weight * log for weight, log in zip(weights, logs, strict=True)) / sum(weights)
    return float(f"{math.exp(mean):.2g}")


def _rank(row: Row) -> tuple[float, ...]:
    """Rank finalists, which were tried under all masks, before the others."""
    return row["masks"], *_merit(row)


def _merit(row: Row) -> tuple[float, float, float]:
    """Rank a setting by what it recovered, then by how little the model moves its answers.

    A model at a low noise level moves everything little, so noise levels are ranked by the error of the answers.
    """
    last = "error" if "noise_level" in row else "fixed_point_error"
    return row["accurate"], row["approximate"], -row[last]


def search_space(
    f: Any, gamma: float | str | None, start: str | None, noise_std: float, noise_level: float | str | None = None
) -> SearchSpace:
    """Take what is given, else the paper's setting for its own networks, else everything there is to try."""
    if isinstance(f, DenoiserAt):
        return denoiser_space(f, gamma, start, noise_level)
    paper = papers_setting_for(f, noise_std)
    gammas: tuple[float, ...] = GAMMAS
    starts: tuple[Start, ...] = tuple(STARTS.values())
    if paper is not None:
        gammas, starts = (paper.gamma,), (paper.start,)
    if gamma is not None:
        gammas = GAMMAS if isinstance(gamma, str) else (float(gamma),)
    if start is not None:
        starts = starts_named(start)
    return SearchSpace(gammas, starts)


def denoiser_space(
    f: DenoiserAt, gamma: float | str | None, start: str | None, noise_level: float | str | None
) -> SearchSpace:
    """Search the noise level together with gamma; the random start mask was best wherever it was compared."""
    gammas: tuple[float, ...] = DENOISER_GAMMAS
    if gamma is not None and not isinstance(gamma, str):
        gammas = (float(gamma),)
    starts: tuple[Start, ...] = (half_kept,)
    if start is not None:
        starts = starts_named(start)
    return SearchSpace(gammas, starts, noise_levels_to_try(f, noise_level), DENOISER_ROUNDS)


def starts_named(start: str) -> tuple[Start, ...]:
    """Return the start of this name, or all of them for auto."""
    if start in STARTS:
        return (STARTS[start],)
    return tuple(STARTS.values())


def papers_setting_for(f: Any, noise_std: float = 0.0) -> Setting | None:
    """Return the paper's setting for one of its networks; None for any other model."""
    paper = f.paper_settings(noise_std) if isinstance(f, Network) else None
    return None if paper is None else Setting(paper.gamma, STARTS[paper.start])


def tune(
    request: AuditRequest, f: Any, model_hash: str, few: Images, space: SearchSpace, store: Store,
    progress: AuditProgress,
) -> Tuning:  # fmt: skip
    """Try every setting on a few training images; results are stored, so a resumed audit takes the same setting."""
    best_masks = DENOISER_MASKS if isinstance(f, DenoiserAt) else MASKS
    masks, others = masks_to_tune_on(request.named_masks, best_masks)
    noise_std, seed = request.noise_std, request.seed
    identity = {"model": model_hash, "images": few.hash, "fills": request.fills, "noise_std": noise_std, "seed": seed}

    def try_on(setting: Setting, masks: list[str]) -> Row:
        attack = space.attack(setting, request.paste)
        damaged = damaged_copies(few, masks, request.fills, noise_std=noise_std, seed=seed)
        run = partial(try_method, at_noise_level(f, setting.noise_level), few, attack, damaged, chunk=request.chunk)
        level = {} if setting.noise_level is None else {"noise_level": setting.noise_level}
        return level | store.once("tuning", {**identity, **level, "masks": masks, "attack": attack}, run)

    tried = search(space.settings, try_on, masks, others, progress)
    return Tuning(list(few.ids), [*masks, *others], tried)


def search(
    settings: Sequence[Setting], try_on: Callable[[Setting, list[str]], Row], masks: list[str], others: list[str],
    progress: AuditProgress = no_progress,
) -> list[Row]:  # fmt: skip
    """Try every setting on a few masks and the best of them on the others: a row for each setting."""
    total = len(settings) + min(FINALISTS, len(settings)) * bool(others)
    tried = []
    for number, setting in enumerate(settings):
        progress("choosing settings", number, total)
        tried.append({**try_on(setting, masks), "masks": len(masks)})
    if not others:
        return tried
    ranked = sorted(range(len(tried)), key=lambda position: _merit(tried[position]), reverse=True)
    for number, position in enumerate(ranked[:FINALISTS]):
        progress("choosing settings", len(settings) + number, total)
        more = {**try_on(settings[position], others), "masks": len(others)}
        tried[position] = _joined(tried[position], more)
    return tried


def _joined(row: Row, more: Row) -> Row:
    """Average what a setting recovered over the masks of both rows; errors on a log scale."""
    masks = row["masks"] + more["masks"]
    first, second = row["masks"] / masks, more["masks"] / masks
    rates = {name: first * row[name] + second * more[name] for name in ("accurate", "approximate")}
    errors = {name: row[name] ** first * more[name] ** second for name in ("fixed_point_error", "error")}
    return {**row, **rates, **errors, "masks": masks}


def set_apart(images: Images) -> Images:
    """Choose images to tune on, evenly spaced over the set."""
    size = max(FEWEST, min(MOST, max(ENOUGH, len(images) // 10), len(images) // 3))
    if len(images) < 2 * size:
        raise InputError(
            f"Choosing gamma and start takes {size} training images, which are then left out of the score: at least "
            f"{2 * FEWEST} are needed in all, and there are {len(images)}. Give more, or state both settings, for "
            "example gamma=0.5 and start='half_kept' (--gamma 0.5 --start half_kept)."
        )
    return images[images.spread(size)]


def masks_to_tune_on(asked: Mapping[str, Any], best: Sequence[str] = MASKS) -> tuple[list[str], list[str]]:
    """Choose two of the audit's masks, the best ones if they are among them, and the others.

    Masks of files do not fit other sizes.
    """
    names = [mask for mask in asked.values() if isinstance(mask, str)]
    first = list(best) if not names or set(best) <= set(names) else names[:2]
    return first, [name for name in names if name not in first]


def damaged_copies(
    images: Images, masks: Sequence[str], fills: Sequence[str], *, noise_std: float, seed: int
) -> list[Observation]:
    """Damage the images as the audit does: under each mask, erased pixels hold each fill in turn."""
    observations = []
    for name in masks:
        truth = degradation(name, images.shape, count=len(images), seed=seed, columns=images.columns)
        truths = [fill_erased(truth, images, fill, seed) for fill in fills] if isinstance(truth, Erasure) else [truth]
        observations += [observe(images, one, noise_std=noise_std, seed=seed) for one in truths]
    return observations


def try_method(f: Any, images: Images, attack: Any, damaged: Sequence[Observation], *, chunk: int | None = None) -> Row:
    """Measure what a method recovers of images, averaged over masks and fills, and how far f moves its answers."""
    answers = [method_for(attack, seen.truth)(f, seen.y, chunk=chunk).estimate for seen in damaged]
    scores = [Score.of(answer, images.pixels) for answer in answers]
    moved = torch.cat([fixed_point_error(f, answer.to(device_of(f))).cpu() for answer in answers])
    return {
        "gamma": attack.gamma,
        "start": getattr(attack.start, "__name__", str(attack.start)),
        "accurate": _mean([score.accurate.value for score in scores]),
        "approximate": _mean([score.approximate.value for score in scores]),
        "error": _geometric_mean(torch.from_numpy(np.concatenate([score.mse for score in scores]))),
        "fixed_point_error": _geometric_mean(moved),
    }


def _geometric_mean(errors: torch.Tensor) -> float:
    return float(errors.double().nan_to_num(torch.inf).clamp(SMALLEST_ERROR, 1e30).log().mean().exp())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
