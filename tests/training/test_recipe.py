import inspect
import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from recollect import FullyConnected, InputError, UNet
from recollect.training import Recipe


def test_a_recipe_is_its_record() -> None:
    record = json.loads(json.dumps(Recipe(rate=0.5, batch=3, seed=7).record()))
    assert Recipe(**{**record, "betas": tuple(record["betas"])}) == Recipe(rate=0.5, batch=3, seed=7)


def test_defaults_follow_the_kind_of_network_and_the_size_of_the_set() -> None:
    fc, unet = FullyConnected((1, 4, 4), layers=3, width=16), UNet(widths=(4, 8))
    assert Recipe.for_network(fc, 16) == Recipe("adam", rate=1e-3)
    assert Recipe.for_network(fc, 16, "muon") == Recipe("muon", rate=0.01, weight_decay=0.15)
    assert Recipe.for_network(unet, 50) == Recipe(
        "muon", rate=0.02, weight_decay=0.2, anneal_steps=60_000, anneal_power=2.0
    )
    assert Recipe.for_network(fc, 16, seed=3).seed == 3


def test_adam_is_slower_the_wider_a_network_is() -> None:
    for network, rate in (
        (FullyConnected((1, 4, 4), layers=3, width=1024), 0.4 / 1024),
        (FullyConnected((1, 4, 4), layers=3, width=100), 1e-3),
        (UNet(), 0.4 / 1024),
        (UNet(widths=(16, 400)), 0.4 / 800),
        (UNet(widths=(4, 8)), 1e-3),
    ):
        assert Recipe.for_network(network, 16, "adam").rate == rate


def test_more_images_than_the_width_are_trained_with_muon_in_large_batches() -> None:
    fc, unet = FullyConnected((1, 4, 4), layers=3, width=16), UNet(widths=(4, 8))
    slow = Recipe("adam", rate=1e-3, anneal_steps=900, anneal_shape="linear", solve_below=None)
    assert Recipe.for_network(fc, 17, "adam") == slow
    assert Recipe.for_network(fc, 17) == replace(
        slow, optimizer="muon", rate=0.03, weight_decay=0.15, newton_schulz_steps=7
    )
    assert [Recipe.for_network(fc, n).batch for n in (12_500, 12_501, 25_000)] == [None, 12_500, 12_500]
    assert [Recipe.for_network(unet, n).batch for n in (256, 257)] == [None, 128]


def test_the_width_is_that_of_hidden_layers_whatever_the_size_of_an_image() -> None:
    fc = FullyConnected((1, 2, 2), layers=3, width=1024)
    assert Recipe.for_network(fc, 100) == Recipe("adam", rate=0.4 / 1024)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"optimizer": "sgd"}, r"no optimizer 'sgd'; choose from adam, muon"),
        ({"rate": 0.0}, r"learning rate must be positive, got 0.0"),
        ({"rate": float("nan")}, r"learning rate must be positive, got nan"),
        ({"rate": float("inf")}, r"learning rate must be positive, got inf"),
        ({"weight_decay": -0.1}, r"weight decay must be zero or more and below 1 / rate, got -0.1"),
        ({"weight_decay": 1e3}, r"below 1 / rate, got 1000.0"),
        ({"betas": (0.9, 1.0)}, r"two numbers from 0 to below 1, got \(0.9, 1.0\)"),
        ({"betas": (0.9,)}, r"two numbers"),
        ({"newton_schulz_steps": 0}, r"at least one Newton-Schulz step, got 0"),
        ({"average_steps": 0}, r"averaged over at least one step, got 0"),
        ({"batch": 0}, r"at least one image, got 0"),
        ({"anneal_steps": 0}, r"annealed over at least one step, got 0"),
        ({"anneal_shape": "steps"}, r"along a cosine or linear curve, got 'steps'"),
        ({"anneal_power": 0.0}, r"power of the annealing must be positive, got 0.0"),
    ],
)
def test_recipes_that_cannot_be(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(Recipe(), **wrong)


def test_the_plain_recipe_is_what_pytorch_has() -> None:
    """But for batches of large sets: Adam's rate and betas, no average, decay, schedule, interventions or TF32."""
    recipe = Recipe.plain(50, seed=3)
    adam = inspect.signature(torch.optim.Adam).parameters
    assert (recipe.optimizer, recipe.rate, recipe.betas) == ("adam", adam["lr"].default, adam["betas"].default)
    assert (recipe.weight_decay, recipe.average_steps, recipe.anneal_steps, recipe.interventions) == (
        0,
        None,
        None,
        False,
    )
    assert (recipe.batch, recipe.solve_below, recipe.tf32_until, recipe.seed) == (None, None, None, 3)
    assert Recipe.plain(1000).batch == 128


@pytest.mark.parametrize("wrong", [{"input_noise": -0.1}, {"input_noise": float("nan")}, {"shift": -1}])
def test_noise_and_shifts_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Noise and shift are zero or more"):
        Recipe(**wrong)
