"""Everything an audit works with, opened and checked before long work: model, images, damage, methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from recollect.auditing import tuning
from recollect.auditing.damaged_sets import DamagedSet, damage, leave_out, load_sets
from recollect.auditing.diffusion_model import as_autoencoder, at_noise_level, bounded
from recollect.auditing.generic_baseline import check_one_prior, prior_for
from recollect.auditing.method_setup import TUNED, are_built, build, names_with, unbuilt, with_companions
from recollect.auditing.model_identity import ModelIdentity, identify, weights_hash
from recollect.auditing.progress import AuditProgress
from recollect.auditing.request import AuditRequest
from recollect.auditing.store import Store
from recollect.canaries import CanarySet, open_canaries
from recollect.degradation import Degradation, Erasure
from recollect.devices.precision import device_of
from recollect.diffusion import DenoiserAt, is_pipeline
from recollect.duplicates import Duplicates, find_duplicates
from recollect.errors import InputError
from recollect.images import Images
from recollect.methods import Method
from recollect.models import Probe, at_most, open_model, probe_model, source_hash, stated_parts
from recollect.models.wording import option


@dataclass(frozen=True, eq=False)
class Inputs:
    """An audit's model, images and methods."""

    model: Any
    sets: Mapping[str, Images]  # as given, before any image is left out
    damaged_sets: Sequence[DamagedSet]
    methods: Mapping[str, Any]  # a method that still needs settings is a class
    probe: Probe
    identity: ModelIdentity
    duplicates: Duplicates
    canaries: CanarySet | None = None
    tuning: tuning.Tuning | None = None

    @property
    def scored(self) -> dict[str, Images]:
        """The images that are attacked and scored, by set."""
        return {damaged.set: damaged.images for damaged in self.damaged_sets}

    @property
    def black_masks(self) -> set[str]:
        """The masks under which erased pixels are zero."""
        return {damaged.mask for damaged in self.damaged_sets if damaged.black}

    @property
    def most_kept(self) -> float:
        """The largest share of the values of training images that a mask keeps; other damage keeps them all."""
        return max(_kept_share(damaged.truth) for damaged in self.damaged_sets if damaged.set == "train")


def _kept_share(truth: Degradation) -> float:
    if isinstance(truth, Erasure):
        return float(truth.keep.double().mean())
    return 1.0


def open_inputs(request: AuditRequest) -> Inputs:
    """Open what a request names; a mistake is refused here, before hours of work."""
    model = at_most(as_autoencoder(_open(request), request.noise_level), request.chunk)
    canaries = _open_canaries(request)
    sets = load_sets(canaries.train, canaries.control) if canaries else load_sets(request.train, request.control)
    _check_attractors(request.attractors, sets["train"])
    damaged_sets = damage(sets, request.named_masks, request.fills, request.seed)
    black = any(damaged.black for damaged in damaged_sets)
    methods = with_companions(request.named_methods, black=black)
    _check_damage(methods, damaged_sets)
    prior = prior_for(methods, request.prior, device_of(model))
    methods = build(methods, paste=request.paste, seed=request.seed, prior=prior)
    _check_methods(methods, model, sets["train"])
    probe = probe_model(model, sets["train"], stated=stated_parts(request.model_options))
    identity = identify(model, sets["train"], deterministic=probe.deterministic, source=source_hash(request.model))
    duplicates = find_copies(sets, device_of(model))
    if canaries:
        _check_independence(probe)
        duplicates = replace(duplicates, across=())  # an image left out of one side alone would tell the coins
    damaged_sets = leave_out(damaged_sets, "control", [pair.first for pair in duplicates.across])
    return Inputs(model, sets, damaged_sets, methods, probe, identity, duplicates, canaries)


def choose_settings(request: AuditRequest, inputs: Inputs, store: Store, progress: AuditProgress) -> Inputs:
    """Build the methods that still need settings; images that a search takes are left out of the score."""
    if are_built(inputs.methods):
        return inputs
    level = request.model.sigma if isinstance(request.model, DenoiserAt) else request.noise_level  # fixed by its user
    space = tuning.search_space(inputs.model, request.gamma, request.start, request.noise_std, level)
    setting, damaged_sets, search = space.only, inputs.damaged_sets, None
    if setting is None:
        few = inputs.canaries.known if inputs.canaries else tuning.set_apart(inputs.sets["train"])
        search = tuning.tune(request, inputs.model, inputs.identity.hash, few, space, store, progress)
        setting, damaged_sets = search.best, leave_out(damaged_sets, "train", search.images)
    methods = build(inputs.methods, gamma=setting.gamma, start=setting.start, paste=request.paste, seed=request.seed)
    built_here = {name: methods[name] for name, method in inputs.methods.items() if unbuilt(method)}
    methods |= bounded(built_here, inputs.model)
    model = at_noise_level(inputs.model, setting.noise_level, setting.otherwise)
    identity = replace(inputs.identity, weights=weights_hash(model))  # which names the noise level
    return replace(inputs, model=model, identity=identity, methods=methods, damaged_sets=damaged_sets, tuning=search)


def _open(request: AuditRequest) -> Any:
    is_model = callable(request.model) and not isinstance(request.model, type) and not is_pipeline(request.model)
    if is_model and not request.model_options:
        return request.model
    return open_model(request.model, **request.model_options)


def _open_canaries(request: AuditRequest) -> CanarySet | None:
    if request.canaries is None or isinstance(request.canaries, CanarySet):
        return request.canaries
    return open_canaries(request.canaries)


def _check_attractors(count: int, train: Images) -> None:
    if count > len(train):
        asked = option("attractors", count)
        raise InputError(f"{asked} asks for more training images than there are; examine {len(train)} at most.")


def _check_independence(probe: Probe) -> None:
    """Refuse a model whose answer for one canary depends on others: those in are attacked apart from those out."""
    if probe.batch_influence:
        raise InputError(
            "The model's output for one image depends on the others of its batch, which would tell the coins of the "
            "canaries; compute each image alone (batch=1, on the command line --batch 1)."
        )


def _check_damage(methods: Mapping[str, Any], damaged_sets: Sequence[DamagedSet]) -> None:
    other = next((damaged.mask for damaged in damaged_sets if not isinstance(damaged.truth, Erasure)), None)
    if other:
        for name in names_with(methods, "only_erasures"):
            raise InputError(f"{name} restores erased pixels and cannot undo {other}; leave one of the two out.")


def ignored_settings(request: AuditRequest, methods: Mapping[str, Any]) -> Iterator[str]:
    """Name the settings that were given and that none of these methods takes."""
    for name in TUNED:
        if getattr(request, name) is not None and not any(unbuilt(m) and m.takes(name) for m in methods.values()):
            yield f"The {name} is ignored: none of the methods ({', '.join(methods)}) takes it."


def _check_methods(methods: Mapping[str, Any], model: Any, images: Images) -> None:
    check_one_prior(methods)
    if not isinstance(model, DenoiserAt) or model.denoiser.latent:
        for name in names_with(methods, "only_diffusion"):
            raise InputError(f"{name} is for diffusion models of pixels, and this model is none; leave {name} out.")
    for method in methods.values():
        if not unbuilt(method) and isinstance(method, Method):
            method.check_kind(images.shape)
        if not unbuilt(method) and images.kind == "images" and hasattr(method, "check_shape"):
            method.check_shape(*images.shape)


def find_copies(sets: Mapping[str, Images], device: torch.device | str = "cpu") -> Duplicates:
    """Find images that occur twice; a control set that holds only copies of training images is refused."""
    duplicates = find_duplicates(sets["train"], sets.get("control"), device=device)
    if "control" in sets and len(duplicates.across) == len(sets["control"]):
        raise InputError(_only_copies(sets["control"], duplicates))
    return duplicates


def _only_copies(control: Images, duplicates: Duplicates) -> str:
    if control.kind == "images" or any(pair.exact for pair in duplicates.across):
        return (
            f"Every control image is also a training image ({control.name}); control images are ones that the model "
            "never saw, for example the same source with part=control."
        )
    return (
        f"All {control.kind} of {control.name} are within an MSE of {duplicates.near:g} of training {control.kind}, so "
        "recovery could not be told from likeness; state a narrower range of values, and add clip=1."
    )
