"""A run continues from its saved state with the same bits, and from no other."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import FullyConnected, InputError, UNet
from recollect.checkpoints import read_tensors, write_tensors
from recollect.training import Recipe, Training
from recollect.training.saved_state import FILE
from tests.training.small import RECIPE, Killed, after_calls, messages, small_images, small_network, train, vector

RECIPES = {
    "adam": RECIPE,
    "muon": Recipe(optimizer="muon", rate=0.02),
    "batch": Recipe(batch=6, rate=2e-3),
    "annealed": Recipe(
        "muon", rate=0.01, weight_decay=0.2, anneal_steps=5000, anneal_shape="linear", anneal_power=1.5,
        newton_schulz_steps=7, solve_below=None,
    ),
    "cuts": Recipe(rate=0.5),  # diverges, goes back and is cut
    "collapses": Recipe(rate=0.5, anneal_steps=100),  # and is started again from other weights
}  # fmt: skip
LIMITS = {"adam": 340}  # steps, in which it reaches milestones; what happens to others happens sooner


@cache
def whole_run(name: str) -> Training:
    """Train without a stop, once for all tests that compare with it."""
    return train(recipe=RECIPES[name], max_steps=LIMITS.get(name, 300))


def kill_at(steps: int) -> Callable[[Any], None]:
    def report(progress: Any) -> None:
        if progress.point.steps >= steps:
            raise Killed

    return report


@pytest.mark.parametrize("name", RECIPES)
def test_a_run_stopped_anywhere_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    recipe, limit, whole = RECIPES[name], LIMITS.get(name, 300), whole_run(name)
    for steps in (100, limit - 100):
        with pytest.raises(Killed):
            train(tmp_path, seconds_per_pass=20, recipe=recipe, max_steps=limit, report=kill_at(steps))
    resumed = train(tmp_path, seconds_per_pass=20, recipe=recipe, max_steps=limit)
    assert len(messages(resumed, "resumed")) == 2
    assert torch.equal(vector(whole.network), vector(resumed.network))
    assert (whole.loss, whole.reached) == (resumed.loss, resumed.reached)
    assert [m.wanted for m in whole.milestones] == [m.wanted for m in resumed.milestones]
    assert [p.loss for p in whole.history[:20]] == [p.loss for p in resumed.history[:20]]


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].anneal_steps is None])
def test_a_run_that_hit_its_limit_goes_on_as_if_it_had_not(name: str, tmp_path: Path) -> None:
    """The result holds the best weights, but the state the latest ones. An annealed rate goes by the limit."""
    limit, whole = LIMITS.get(name, 300), whole_run(name)
    first = train(tmp_path, recipe=RECIPES[name], max_steps=150)
    assert not first.reached
    second = train(tmp_path, recipe=RECIPES[name], max_steps=limit)
    assert torch.equal(vector(whole.network), vector(second.network))
    assert [p.averaged for p in whole.history] == [p.averaged for p in second.history]


def with_frozen_layer(scale: float = 1.0) -> FullyConnected:
    network = small_network()
    with torch.no_grad():
        next(network.parameters()).mul_(scale).requires_grad_(False)
    return network


@pytest.mark.parametrize("name", ["adam", "collapses"])
def test_frozen_parameters_belong_to_a_run(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    whole = train(network=with_frozen_layer(), max_steps=300, recipe=recipe)
    assert bool(messages(whole, "started again from other weights")) == (name == "collapses")
    train(tmp_path, network=with_frozen_layer(), max_steps=300, recipe=recipe, stop=after_calls(3))
    resumed = train(tmp_path, network=with_frozen_layer(scale=2.0), max_steps=300, recipe=recipe)
    assert messages(resumed, "step 150] resumed")
    assert torch.equal(next(whole.network.parameters()), next(with_frozen_layer().parameters()))
    assert torch.equal(vector(whole.network), vector(resumed.network))
    with pytest.raises(InputError, match="holds a training run with other frozen parameters"):
        train(tmp_path, recipe=recipe)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"recipe": Recipe(rate=1e-2, solve_below=1e-5)}, r"with another recipe \(rate 0.004, now 0.01\)"),
        ({"images": small_images(seed=1)}, r"on other images;"),
        ({"network": small_network(seed=7)}, r"of another network \(seed 42, now 7\)"),
        ({"network": small_network(activation="prelu")}, r"of another network \(activation lrelu, now prelu\)"),
        ({"network": UNet(channels=1, widths=(4, 8))}, r"of another network \(class FullyConnected, now UNet"),
    ],
)
@pytest.mark.parametrize("steps", [0, 100])
def test_other_settings_are_refused(other: dict[str, Any], words: str, steps: int, tmp_path: Path) -> None:
    train(tmp_path, max_steps=steps)
    with pytest.raises(InputError, match=f"holds a training run {words}.*choose another folder"):
        train(tmp_path, **other)


def test_another_device_is_refused(tmp_path: Path) -> None:
    train(tmp_path, max_steps=50)
    tensors, metadata = read_tensors(tmp_path / FILE)
    values = {**json.loads(metadata["values"]), "device": "cuda"}
    write_tensors(tmp_path / FILE, tensors, {**metadata, "values": json.dumps(values)})
    with pytest.raises(InputError, match=r"another device \(cuda, now cpu\)"):
        train(tmp_path)


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    train(tmp_path, max_steps=50)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-100])
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        train(tmp_path)
    write_tensors(tmp_path / FILE, {"w": torch.zeros(1)}, {"format": "other"})
    with pytest.raises(InputError, match="not a training state that this version of recollect can continue"):
        train(tmp_path)
    (tmp_path / FILE).write_bytes(whole)
    tensors, metadata = read_tensors(tmp_path / FILE)
    write_tensors(tmp_path / FILE, {k: t for k, t in tensors.items() if k != "order"}, metadata)
    with pytest.raises(InputError, match="is damaged: it lacks 'order'"):
        train(tmp_path)


def test_a_setting_that_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    train(tmp_path, max_steps=0)
    tensors, metadata = read_tensors(tmp_path / FILE)
    values = json.loads(metadata["values"])
    del values["recipe"]["anneal_steps"]
    write_tensors(tmp_path / FILE, tensors, {**metadata, "values": json.dumps(values)})
    with pytest.raises(InputError, match=r"another recipe \(anneal_steps not set, now None\)"):
        train(tmp_path)
