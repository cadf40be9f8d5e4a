"""Choose gamma and the start mask: as given, as in the paper, or by a search on images that are then left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recollect.auditing.model_facts import fingerprint
from recollect.auditing.progress import AuditProgress
from recollect.auditing.request import STARTS, AuditRequest
from recollect.auditing.store import Store
from recollect.degradation import Start, half_kept, mask, observe
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Blind
from recollect.networks import Network
from recollect.scoring import Score

GAMMAS = (0.1, 0.5, 1.0)
MASKS = ("block", "dust")
ROUNDS = 25  # a short run tells good settings from bad
FEWEST, MOST = 4, 32  # images that the search takes: a tenth of the set between these


@dataclass(frozen=True)
class Setting:
    """What is chosen for a model: how freely a method departs from the damaged image, and its first mask."""

    gamma: float = 0.5
    start: Start = half_kept


@dataclass(frozen=True)
class SearchSpace:
    """The gammas and starts to choose from; one of each where nothing is searched."""

    gammas: tuple[float, ...]
    starts: tuple[Start, ...]

    @property
    def only(self) -> Setting | None:
        """The one setting there is, if there is one."""
        if len(self.gammas) == len(self.starts) == 1:
            return Setting(self.gammas[0], self.starts[0])
        return None

    @property
    def settings(self) -> list[Setting]:
        return [Setting(gamma, start) for gamma in self.gammas for start in self.starts]


@dataclass(frozen=True)
class Tuning:
    """The images that the search took, and what every setting recovered of them."""

    images: list[str]
    masks: list[str]
    tried: list[dict[str, Any]]

    @property
    def best(self) -> Setting:
        """The setting that recovered most accurately, then approximately, then by mean PSNR."""
        row = max(self.tried, key=lambda r: (r["accurate"], r["approximate"], r["mean_psnr"]))
        return Setting(row["gamma"], STARTS[row["start"]])


def search_space(f: Any, gamma: float | str | None, start: str | None, noise_std: float) -> SearchSpace:
    """Take what is given, else the paper's setting for its own networks, else everything there is to try."""
    paper = papers_setting_for(f, noise_std)
    every_start = tuple(STARTS.values())
    space = SearchSpace(GAMMAS, every_start) if paper is None else SearchSpace((paper.gamma,), (paper.start,))
    gammas, starts = space.gammas, space.starts
    if gamma is not None:
        gammas = GAMMAS if isinstance(gamma, str) else (float(gamma),)
    if start is not None:
        starts = (STARTS[start],) if start in STARTS else every_start
    return SearchSpace(gammas, starts)


def papers_setting_for(f: Any, noise_std: float = 0.0) -> Setting | None:
    """The paper's setting for one of its networks; None for any other model."""
    paper = f.paper_settings(noise_std) if isinstance(f, Network) else None
    return None if paper is None else Setting(paper.gamma, STARTS[paper.start])


def tune(
    request: AuditRequest, f: Any, images: Images, space: SearchSpace, store: Store, progress: AuditProgress
) -> Tuning:
    """Try every setting on a few training images; results are stored, so a resumed audit takes the same setting."""
    few, masks = set_apart(images), masks_to_tune_on(request.named_masks)
    noise_std, seed = request.noise_std, request.seed
    identity = {"model": fingerprint(f, images), "images": few.hash, "masks": masks, "noise_std": noise_std}
    tried = []
    for number, setting in enumerate(space.settings):
        progress("choosing gamma and start", number, len(space.settings))
        blind = Blind(setting.gamma, start=setting.start, limit=ROUNDS)
        run = partial(try_method, f, few, blind, masks, noise_std=noise_std, seed=seed, chunk=request.chunk)
        tried.append(store.once("tuning", {**identity, "seed": seed, "blind": blind}, run))
    return Tuning(list(few.ids), masks, tried)


def set_apart(images: Images) -> Images:
    """Choose images to tune on, evenly spaced over the set."""
    size = min(MOST, max(FEWEST, len(images) // 10))
    if len(images) < 2 * size:
        raise InputError(
            f"Choosing gamma and start takes {size} training images, which are then left out of the score, and there "
            f"are only {len(images)}; give both yourself, for example gamma=0.5 and start='half_kept'."
        )
    return images[images.spread(size)]


def masks_to_tune_on(asked: Mapping[str, Any]) -> list[str]:
    """Choose two of the audit's masks, if they can be made for any number of images."""
    names = [mask for mask in asked.values() if isinstance(mask, str)]
    if not names or set(MASKS) <= set(names):
        return list(MASKS)
    return names[:2]


def try_method(
    f: Any, images: Images, blind: Blind, masks: Sequence[str], *, noise_std: float, seed: int, chunk: int | None = None
) -> dict[str, Any]:
    """Measure what a method recovers of these images, averaged over the masks."""
    scores = []
    for name in masks:
        truth = mask(name, images.shape, count=len(images), seed=seed)
        seen = observe(images, truth, noise_std=noise_std, seed=seed)
        scores.append(Score.of(blind(f, seen.y, chunk=chunk).estimate, images.pixels))
    return {
        "gamma": blind.gamma,
        "start": getattr(blind.start, "__name__", str(blind.start)),
        "accurate": _mean([score.accurate.value for score in scores]),
        "approximate": _mean([score.approximate.value for score in scores]),
        "mean_psnr": _mean([max(score.mean_psnr, -1e3) for score in scores]),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
