"""The straight line: images -> degrade -> recover -> score -> record, for training and control images alike."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from recollect import checks
from recollect.auditing.pictures import TRACED, cell_pictures, film, sampled, set_pictures
from recollect.auditing.result import Audit
from recollect.auditing.store import Store
from recollect.auditing.tuning import Choice, choose
from recollect.autoencoders import FullyConnected, UNet
from recollect.degradation import SIX, Erasure, Observation, all_erased, half_kept, mask, observe
from recollect.errors import InputError
from recollect.images import Images
from recollect.models import open_model, probe_model
from recollect.precision import as_judged
from recollect.records import Record, plain, provenance
from recollect.recovery import Blind, Iterate, KnownMask, Recovery, Stop, ZeroRule
from recollect.scoring import mask_agreement, mse
from recollect.sources import find_duplicates, load

Narrator = Callable[[str, int, int], None]  # what is being done, how far, of how much
METHODS = ("blind", "iterate", "known")


def audit(
    model: Any,
    *,
    train: Any,
    control: Any = None,
    masks: Any = "all",
    methods: Sequence[Any] = METHODS,
    gamma: float | str | None = None,
    start: str | None = None,
    noise_std: float = 0.0,
    attractors: int = 0,
    out: str | Path | None = None,
    chunk: int | None = None,
    seed: int = 42,
    command: str = "",
    narrate: Narrator | None = None,
) -> Audit:
    """How much of `train` can be read back out of `model`; `control` are images it was never trained on.

    `masks` are "all", names, files or arrays (a dict names them); `methods` are names or methods of your own.
    `gamma` and `start` are the paper's for its networks and searched for others ("auto"), on images left out of
    the score. `attractors` is the number of training images whose Jacobian is examined. With `out`, every
    finished cell is on disk at once, and a second call goes on where the first was stopped.
    """
    f = model if callable(model) and not isinstance(model, (str, Path)) else open_model(model)
    sets = _open_sets(train, control)
    probe = probe_model(f, sets["train"])
    told = narrate or (lambda _words, _done, _total: None)
    base, left_out, choice = _settings_for(f, sets["train"], gamma, start, told)
    sets["train"] = sets["train"][left_out:]
    named = _named_masks(masks)
    chosen = _methods(methods, base, noise_std)
    facts = _facts(f, sets, noise_std, seed, choice, left_out)
    run = _Cells(f, Store(out), facts, noise_std, seed, chunk, told, len(named) * len(chosen) * len(sets))
    for set_name, images in sets.items():
        for mask_name, what in named.items():
            degradation = mask(what, images.shape, count=len(images), seed=seed)
            run.mask(set_name, images, mask_name, degradation, chosen)
    result = Audit(
        records=run.records, title=facts["model"]["name"], facts=facts, store=run.store, command=command,
        checks=_checks(probe.deterministic, facts, sets, run.records),
        attractors=_attractors(f, sets["train"][:attractors], run.records, told) if attractors else None,
        trace_mask=_add_film(run, sets["train"], named, chosen),
    )  # fmt: skip
    if out:
        result.save(out)
    return result


@dataclass
class _Cells:
    """Runs cells that are not on disk yet, and keeps what they gave."""

    f: Any
    store: Store
    facts: Mapping[str, Any]
    noise_std: float
    seed: int
    chunk: int | None
    narrate: Narrator
    total: int

    def __post_init__(self) -> None:
        self.records: list[Record] = []

    def mask(self, set_name: str, images: Images, mask_name: str, degradation: Erasure, methods: Sequence[Any]) -> None:
        """All methods on one set under one mask; the images are degraded only if something is left to do."""
        some = sampled(images, self.total)
        self.store.add_pictures({f"{k}/{set_name}": v for k, v in set_pictures(images, some).items()})
        seen: Observation | None = None
        for method in methods:
            cell = {"set": set_name, "mask": mask_name, "method": method.name}
            settings = self._settings(images, degradation, method)
            words = f"{set_name} / {mask_name} / {method.name}"
            self.narrate(words, len(self.records), self.total)
            record = self.store.find(cell, settings)
            if record is None:
                seen = seen or observe(images, degradation, noise_std=self.noise_std, seed=self.seed)
                record = self._run(cell, settings, method, images, seen, some)
            self.records.append(record)
        self.narrate(f"{set_name} / {mask_name}", len(self.records), self.total)

    def _settings(self, images: Images, degradation: Erasure, method: Any) -> dict[str, Any]:
        kept = np.packbits(degradation.keep.cpu().numpy()).tobytes()
        return {
            "method": plain(method), "noise_std": self.noise_std, "seed": self.seed, "images": images.hash,
            "mask": hashlib.sha256(kept).hexdigest()[:16], "model": self.facts["model"]["hash"],
        }  # fmt: skip

    def _run(
        self, cell: dict[str, Any], settings: dict[str, Any], method: Any, images: Images, seen: Observation, some: Any
    ) -> Record:
        began = time.monotonic()
        recovery = recover(method, self.f, seen, chunk=self.chunk)
        seconds = time.monotonic() - began
        agreement = None
        if isinstance(recovery.degradation, Erasure) and not method.knows_truth and isinstance(seen.truth, Erasure):
            agreement = mask_agreement(recovery.degradation.keep, seen.truth.expand(seen.y).keep)
        record = Record(
            cell=cell, settings=settings, ids=list(images.ids), mse=mse(recovery.estimate, images.pixels).tolist(),
            rounds=recovery.rounds.tolist(), steps=recovery.steps.tolist(),
            stop=[Stop(code).name.lower() for code in recovery.stop.tolist()],
            mask_accuracy=agreement.accuracy.tolist() if agreement else None,
            mask_iou=agreement.erased_iou.tolist() if agreement else None,
            seconds=round(seconds, 3), provenance=self.facts["provenance"],
        )  # fmt: skip
        self.store.add(record, _pictures_of(cell, cell_pictures(images, seen, recovery, some)))
        return record


def recover(method: Any, f: Any, seen: Observation, **options: Any) -> Recovery:
    """Call a method with what it may know: the truth goes only to methods that say they need it."""
    return method(f, seen.y, seen.truth, **options) if method.knows_truth else method(f, seen.y, **options)


def _pictures_of(cell: Mapping[str, Any], pictures: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    place = f"{cell['set']}/{cell['mask']}"
    names = {kind: place if kind == "degraded" else f"{place}/{cell['method']}" for kind in pictures}
    return {f"{kind}/{names[kind]}": array for kind, array in pictures.items()}


def _open_sets(train: Any, control: Any) -> dict[str, Images]:
    sets = {"train": load(train) if isinstance(train, str) else Images.of(train, name="train")}
    if control is not None:
        sets["control"] = load(control) if isinstance(control, str) else Images.of(control, name="control")
        if sets["control"].shape != sets["train"].shape:
            sizes = " and ".join("x".join(map(str, s.shape)) for s in sets.values())
            raise InputError(f"Train and control images differ in size ({sizes}); control images must be alike.")
    return sets


def _settings_for(
    f: Any, images: Images, gamma: float | str | None, start: str | None, told: Narrator
) -> tuple[Blind, int, Choice | None]:
    """The blind method's settings, how many images were spent on finding them, and what was tried."""
    starts = {None: None, "auto": None, "random": half_kept, "erased": all_erased}
    if start not in starts:
        raise InputError(f"There is no start mask {start!r}; choose random, erased or auto.")
    wanted = starts[start]
    if isinstance(gamma, str) and gamma != "auto":
        raise InputError(f"gamma is a number or 'auto', not {gamma!r}.")
    known = papers_settings(f) if start != "auto" and gamma != "auto" else None
    if isinstance(gamma, (int, float)):
        known = Blind(gamma=float(gamma), start=wanted or (known.start if known else half_kept))
    if known:
        return replace(known, start=wanted or known.start), 0, None
    size = min(32, max(4, len(images) // 10))
    if len(images) <= size:
        raise InputError(f"Choosing gamma needs {size} images of its own and more to score; there are {len(images)}.")
    choice = choose(f, images[:size], progress=lambda done, total: told("choosing gamma and start", done, total))
    return replace(choice.blind, start=wanted or choice.blind.start), size, choice


def papers_settings(f: Any) -> Blind | None:
    """What the paper used for its own networks; None for any other."""
    if isinstance(f, UNet):
        return Blind(gamma=1.0, start=all_erased)
    if isinstance(f, FullyConnected):
        deep = f.settings["layers"] > 10 or f.settings["activation"] == "prelu"
        return Blind(gamma=0.1 if deep else 0.5, start=half_kept)
    return None


def _named_masks(masks: Any) -> dict[str, Any]:
    """What was asked for, by name; arrays in a list are numbered."""
    if isinstance(masks, str):
        masks = list(SIX) if masks == "all" else [part.strip() for part in masks.split(",")]
    if not isinstance(masks, Mapping):
        items: Iterable[Any] = masks if isinstance(masks, (list, tuple)) else [masks]
        masks = {str(m) if isinstance(m, (str, Path)) else f"mask-{i}": m for i, m in enumerate(items, 1)}
    if not masks:
        raise InputError("At least one mask is needed, for example masks='all'.")
    return {str(name): what for name, what in masks.items()}


def _methods(methods: Sequence[Any], base: Blind, noise_std: float) -> list[Any]:
    """Methods from names, with the blind settings; the zero rule always stands beside blind."""
    made = {
        "blind": base,
        "iterate": Iterate(),
        "known": KnownMask(gamma=base.gamma, paste=noise_std == 0),
        "zero-rule": ZeroRule(gamma=base.gamma),
    }
    chosen: list[Any] = []
    for method in methods:
        if isinstance(method, str) and method not in made:
            raise InputError(f"There is no method {method!r}; choose from {', '.join(made)}.")
        chosen.append(made[method] if isinstance(method, str) else method)
    if not chosen:
        raise InputError("At least one method is needed, for example blind.")
    names = [m.name for m in chosen]
    if "blind" in names and "zero-rule" not in names:
        chosen.insert(names.index("blind") + 1, made["zero-rule"])
    return chosen


def _facts(
    f: Any, sets: Mapping[str, Images], noise_std: float, seed: int, choice: Choice | None, left_out: int
) -> dict[str, Any]:
    train = sets["train"]
    device = next((p.device for p in f.parameters()), torch.device("cpu")) if isinstance(f, nn.Module) else "cpu"
    model: dict[str, Any] = {"name": type(f).__name__ if isinstance(f, nn.Module) else getattr(f, "__name__", "model")}
    if isinstance(f, nn.Module):
        model["parameters"] = sum(p.numel() for p in f.parameters())
        model |= {"network": plain(f.settings)} if isinstance(f, (FullyConnected, UNet)) else {}
    model |= {"train_loss": train_loss(f, train), "hash": fingerprint(f, train)}
    settings: dict[str, Any] = {"noise_std": noise_std, "seed": seed}
    if choice:
        settings |= {"tried": choice.tried, "tuning_images_left_out": left_out}
    about = {name: {"name": s.name, "images": len(s), "hash": s.hash} for name, s in sets.items()}
    return {"model": model, "settings": settings, "provenance": provenance(device), "control": None, **about}


@torch.no_grad()
def train_loss(f: Any, images: Images, chunk: int = 256) -> float:
    """The autoencoder's own error on images, in full float32."""
    device = next((p.device for p in f.parameters()), "cpu") if isinstance(f, nn.Module) else "cpu"
    with as_judged(f):
        parts = [images[i : i + chunk].pixels.to(device) for i in range(0, len(images), chunk)]
        return float(torch.cat([mse(f(x), x) for x in parts]).mean())


@torch.no_grad()
def fingerprint(f: Any, images: Images) -> str:
    """A hash of the model: of its weights where it has any, and of what it makes of four images."""
    digest = hashlib.sha256(type(f).__name__.encode())
    if isinstance(f, nn.Module):
        for name, tensor in f.state_dict().items():
            digest.update(name.encode() + np.ascontiguousarray(tensor.detach().cpu().float().numpy()).tobytes())
        if any(True for _ in f.parameters()):
            return digest.hexdigest()[:16]
    with as_judged(f):
        digest.update(f(images[:4].pixels).detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()[:16]


def _checks(
    deterministic: bool, facts: Mapping[str, Any], sets: Mapping[str, Images], records: Sequence[Record]
) -> list[checks.Check]:
    control = sets.get("control")
    twins = find_duplicates(sets["train"], control)
    found = [
        checks.check_determinism(deterministic),
        checks.check_fit(facts["model"]["train_loss"]),
        checks.check_control(len(control) if control else None),
        checks.check_duplicates(len(twins.across), len(twins.inside)),
        checks.check_black(sets["train"].pixels),
        checks.check_zero_rule(records),
        checks.check_stops(records),
        checks.check_float32_floor(records),
    ]
    return [check for check in found if check is not None]


def _attractors(f: Any, images: Images, records: Sequence[Record], told: Narrator) -> list[dict[str, Any]]:
    """Fixed-point error and spectral radius of some training images, and whether blind recovered them."""
    from recollect.attractors import fixed_point_error, spectral_radius

    rows = []
    blind = [r for r in records if r.cell["set"] == "train" and r.cell["method"] == "blind"]
    device = next((p.device for p in f.parameters()), torch.device("cpu")) if isinstance(f, nn.Module) else "cpu"
    for i, name in enumerate(images.ids):
        told("attractors", i, len(images))
        x = images[i].pixels.to(device)
        radius = spectral_radius(f, x)
        rows.append({
            "id": name, "fixed_point_error": float(fixed_point_error(f, x)), "spectral_radius": radius,
            "attractor": radius < 1, "recovered": any(r.score.mse[r.ids.index(name)] < 1e-7 for r in blind),
        })  # fmt: skip
    return rows


def _add_film(run: _Cells, images: Images, named: Mapping[str, Any], methods: Sequence[Any]) -> str | None:
    """A few images under one mask, round by round, for the methods that go in rounds."""
    moving = {m.name: m for m in methods if m.name in ("blind", "iterate")}
    if not moving:
        return None
    name = "half" if "half" in named else next(iter(named))
    degradation = mask(named[name], images.shape, count=len(images), seed=run.seed)
    few = images[:TRACED]
    seen = observe(few, degradation[: len(few)], noise_std=run.noise_std, seed=run.seed)
    runs = {n: (lambda y, trace, m=m: m(run.f, y, trace=trace)) for n, m in moving.items()}
    run.store.film = film(few, seen, runs)
    return name
