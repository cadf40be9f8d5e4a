"""The straight line: images -> degrade -> recover -> score -> record, for training and control images alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from recollect.auditing import attraction, checks, tuning
from recollect.auditing import request as plan
from recollect.auditing.generic_baseline import prior_facts, sees_no_model, with_prior
from recollect.auditing.measure import Conditions, Measurer, Narrator, run_cells
from recollect.auditing.method_facts import method_facts
from recollect.auditing.model_facts import damage_moved, describe_model, fingerprint
from recollect.auditing.pictures import TRACED, film
from recollect.auditing.result import Audit
from recollect.auditing.store import Store
from recollect.degradation import observe
from recollect.devices.precision import device_of
from recollect.engine import arithmetic_of
from recollect.errors import InputError, check_seed, is_number, is_whole
from recollect.images import Images
from recollect.methods import Blind, Iterate, Refined
from recollect.models import open_model, probe_model
from recollect.records import Record, plain, provenance
from recollect.scoring import ACCURATE, APPROXIMATE
from recollect.sources import Duplicates, find_duplicates


def audit(
    model: Any,
    *,
    train: Any,
    control: Any = None,
    masks: Any = "all",
    fill: Any = "zero",
    methods: Any = plan.METHODS,
    gamma: float | str | None = None,
    start: str | None = None,
    noise_std: float = 0.0,
    attractors: int = 0,
    prior: Any = None,
    out: str | Path | None = None,
    chunk: int | None = None,
    seed: int = 42,
    title: str = "",
    command: str = "",
    narrate: Narrator | None = None,
    measurer: Measurer | None = None,
) -> Audit:
    """How much of `train` can be read back out of `model`; `control` are images it was never trained on.

    `masks` are "all", names, files, arrays or degradations (a dict names them), `fill` is what erased pixels hold:
    zero, constant, noise, images, or several of them. `methods` are names or methods of your own.
    `gamma` and `start` are the paper's for its networks and searched for others ("auto"), on images left out of
    the score. `prior` is the diffusion model of the method ddnm, a folder or a hub name; by default the bundled one.
    `attractors` is the number of training images whose Jacobian is examined. With `out`, every
    finished cell is on disk at once, and a second call goes on where the first was stopped. `measurer` is who measures
    a cell, if not this process: a Spread over several machines.
    """
    told = narrate or _silent
    _check_numbers(noise_std, attractors, seed)
    f = model if callable(model) and not isinstance(model, type) else open_model(model)
    sets, asked = plan.read_sets(train, control), plan.read_masks(masks)
    places = plan.read_places(sets, asked, seed, plan.read_fills(fill))
    black = {place.mask for place in places if place.black}
    named = plan.read_methods(methods, black=bool(black))
    named = with_prior(named, prior, places, device_of(f), seed)
    grid = plan.read_grid(f, named, gamma, start, noise_std)
    probe = probe_model(f, sets["train"])
    twins = _twins(sets)
    store = Store(out)
    tuned = None if grid.settled else _tuned(f, sets["train"], grid, asked, store, noise_std, seed, chunk, told)
    if tuned:
        places = plan.leave_out(places, tuned.images)
    chosen = plan.settle_methods(named, grid.settled or tuned.best, noise_std)  # type: ignore[union-attr]
    facts = _facts(f, probe.deterministic, places, chosen, noise_std, seed, tuned)
    conditions = Conditions(facts["model"]["hash"], noise_std, seed, facts["provenance"], chunk)
    records = run_cells(
        measurer or (lambda trial, progress: trial.measured(f, progress)), places, chosen, conditions, store, told
    )
    scored = next(p.images for p in places if p.set == "train")
    found = _checks(probe.deterministic, facts["model"], scored, black, len(sets.get("control", ())), twins, records)
    rows, check = _attractors(f, scored[:attractors], conditions, records, store, told) if attractors else (None, None)
    found += [check] if check else []
    found += _prior_checks(facts["prior"], records) if facts["prior"] else []
    trace_mask = _add_film(f, places, chosen, conditions, store)
    result = Audit(records, title or facts["model"]["name"], facts, store, found, rows, trace_mask, command)
    if out:
        result.save(out)
    return result


def _silent(_words: str, _done: float, _total: float) -> None:
    """Progress that nobody asked for."""


def _check_numbers(noise_std: float, attractors: int, seed: int) -> None:
    if not is_number(noise_std) or not 0 <= noise_std < math.inf:
        raise InputError(f"The noise's standard deviation must be zero or more, got {noise_std!r}.")
    if not is_whole(attractors):
        raise InputError(f"attractors is a number of images, zero or more; got {attractors!r}.")
    check_seed(seed)


def _twins(sets: Mapping[str, Images]) -> Duplicates:
    """Images that occur twice, before any is set apart; a control set that is all training images is a mistake."""
    twins = find_duplicates(sets["train"], sets.get("control"))
    if "control" in sets and sum(pair.exact for pair in twins.across) == len(sets["control"]):
        raise InputError(
            f"Every control image is also a training image ({sets['control'].name}); control images are ones that the "
            "model never saw, for example the same source with part=control."
        )
    return twins


def _tuned(
    f: Any, images: Images, grid: plan.Grid, asked: Mapping[str, Any], store: Store,
    noise_std: float, seed: int, chunk: int | None, told: Narrator,
) -> tuning.Tuning:  # fmt: skip
    """Search the grid on some training images; what was found is kept, so that resuming takes the same settings."""
    some, masks = tuning.set_apart(images), tuning.masks_to_tune_on(asked)
    candidates = tuning.candidates(grid.gammas, grid.starts)
    identity = {"model": fingerprint(f, images), "images": some.hash, "masks": masks, "noise_std": noise_std}
    tried = []
    for number, blind in enumerate(candidates):
        told("choosing gamma and start", number, len(candidates))
        run = partial(tuning.try_setting, f, some, blind, masks, noise_std=noise_std, seed=seed, chunk=chunk)
        tried.append(store.once("tuning", {**identity, "seed": seed, "blind": blind}, run))
    return tuning.Tuning(list(some.ids), masks, tried)


def _facts(
    f: Any, deterministic: bool, places: Sequence[plan.Place], methods: Mapping[str, Any],
    noise_std: float, seed: int, tuned: tuning.Tuning | None,
) -> dict[str, Any]:  # fmt: skip
    """What is recorded beside the numbers: the model, the images, every hyperparameter, versions and machine."""
    sets = {p.set: p.images for p in places}
    settings: dict[str, Any] = {
        "noise_std": noise_std, "seed": seed, "methods": plain(methods),
        "without_model": [name for name, method in methods.items() if sees_no_model(method)],
        "masks": {p.mask: str(p.truth) for p in places if p.set == "train"},
        "thresholds": {"accurate": ACCURATE, "approximate": APPROXIMATE},
        "gamma_and_start": "searched, on training images left out of the score" if tuned else "given, or the paper's",
    }  # fmt: skip
    if tuned:
        settings |= {"tried": tuned.tried, "tried_on_masks": tuned.masks, "tuning_images_left_out": tuned.images}
    about = {name: {"name": s.name, "images": len(s), "hash": s.hash} for name, s in sets.items()}
    started = datetime.now(UTC).isoformat(timespec="seconds")
    moved = damage_moved(f, sets["train"], (p.truth for p in places if p.set == "train"))
    model = describe_model(f, sets["train"], deterministic) | {"damage_moved": moved}
    products = arithmetic_of(f, sets["train"].pixels)
    return {
        "model": model, "methods": method_facts(methods), "settings": settings, "control": None, **about,
        "prior": prior_facts(methods, sets),
        "provenance": provenance(device_of(f), started=started, products=products),
    }  # fmt: skip


def _checks(
    deterministic: bool, model: Mapping[str, Any], train: Images, black: Set[str], control: int, twins: Duplicates,
    records: Sequence[Record],
) -> list[checks.Check]:  # fmt: skip
    found = [
        checks.check_determinism(deterministic),
        checks.check_fit(model["train_loss"]),
        checks.check_copying(model["damage_moved"]),
        checks.check_control(control or None),
        checks.check_overlap(len(twins.across), control) if control else None,
        checks.check_duplicates(len(twins.inside), twins.train_count),
        checks.check_black(train) if black else None,
        checks.check_zero_rule([record for record in records if record.cell["mask"] in black]),
        checks.check_stops(records),
        checks.check_float32_floor(records, model["rounding"]),
    ]
    return [check for check in found if check is not None]


def _prior_checks(prior: Mapping[str, Any], records: Sequence[Record]) -> list[checks.Check]:
    strength = checks.check_prior_strength(records, prior["methods"], prior["beside"])
    return [checks.check_prior(prior), *([strength] if strength else [])]


def _attractors(
    f: Any, images: Images, conditions: Conditions, records: Sequence[Record], store: Store, told: Narrator
) -> tuple[list[dict[str, Any]] | None, checks.Check]:
    """What is around some training images; a model without derivatives does not cost the audit its other results."""
    no_attacks = ("known", "zero-rule", "ddnm", "biharmonic")
    blind = [r for r in records if r.cell["set"] == "train" and r.cell["method"] not in no_attacks]
    try:
        rows = attraction.with_outcome(attraction.examine(f, images, conditions.model_hash, store, told), blind)
    except InputError as error:
        return None, checks.Check("attractors", "warning", f"Attractors could not be examined: {error}")
    return rows, checks.check_attractors(rows)


def _add_film(
    f: Any, places: Sequence[plan.Place], methods: Mapping[str, Any], conditions: Conditions, store: Store
) -> str | None:
    """A few training images under one mask, round by round, for the methods that go in rounds."""
    train = [p for p in places if p.set == "train"]
    place = next((p for p in train if p.mask == "half"), train[0])
    moving = {
        n: plan.method_for(m, place.truth) for n, m in methods.items() if isinstance(m, (Blind, Iterate, Refined))
    }
    if not moving:
        return None
    few = place.images[:TRACED]
    seen = observe(few, place.truth[:TRACED], noise_std=conditions.noise_std, seed=conditions.seed)
    store.film = film(few, seen, {n: (lambda y, trace, m=m: m(f, y, trace=trace)) for n, m in moving.items()})
    return place.mask
