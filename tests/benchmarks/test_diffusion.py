from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from recollect import Images
from recollect.diffusion import Denoiser, DenoiserRecipe, train_denoiser
from recollect.records import read_json
from tests.benchmarks.running import benchmark, ended

attacks, training = benchmark("diffusion_attacks"), benchmark("diffusion_training")


def random_images(count: int, seed: int) -> Images:
    return Images(torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed)))


def test_each_length_is_the_training_of_that_length_alone(tmp_path: Path) -> None:
    images = random_images(6, seed=0)
    recipe = DenoiserRecipe(settings={"widths": (16,)}, batch=2, warm_up=2)
    learner = training.learner_for(images, recipe, torch.device("cpu"))
    training.seconds_a_step(learner, 1)  # leaves no trace
    trained = training.train_lengths(learner, [3, 8])
    assert training.steps_in_all([3, 8]) == 8 + 2
    for one in trained:
        folder = tmp_path / str(one.steps)
        alone = train_denoiser(images, folder, max_steps=one.steps, recipe=recipe, device="cpu", samples=0)
        expected = alone.network.state_dict()
        assert all(torch.equal(weights, expected[name]) for name, weights in one.network.state_dict().items())


def test_a_training_in_a_folder_is_that_of_its_length_alone_and_is_not_repeated(tmp_path: Path) -> None:
    images, device = random_images(6, seed=0), torch.device("cpu")
    recipe = DenoiserRecipe(settings={"widths": (16,)}, batch=2, warm_up=2)
    (alone,) = training.train_lengths(training.learner_for(images, recipe, device), [5])
    first, again = (training.train_in_folder(images, tmp_path, 5, recipe, device) for _ in range(2))
    assert again.seconds == first.seconds
    for one in (first, again):
        assert (one.steps, one.epochs) == (alone.steps, alone.epochs)
        assert all(torch.equal(a, b) for a, b in zip(one.network.parameters(), alone.network.parameters(), strict=True))


def test_a_denoiser_that_holds_its_training_images_is_found_out() -> None:
    train, unseen = random_images(8, seed=1), random_images(8, seed=2)
    stored = 2 * train.pixels.flatten(1) - 1

    def memorizer(x: Tensor, sigma: Tensor) -> Tensor:
        distances = torch.cdist(x.flatten(1), stored).square()
        return (torch.softmax(-distances / (2 * sigma**2), 1) @ stored).view_as(x)

    sets = attacks.Sets({"train": train[:6], "unseen": unseen[:6]}, {"train": train[6:], "unseen": unseen[6:]})
    denoiser = Denoiser.of(memorizer, train.image_shape)
    record, pictures = attacks.measure(denoiser, train, sets, rounds=2, samples=8)
    block = record["attacks"]["blind"]["block"]
    assert (block["train"]["recovered"], block["unseen"]["recovered"]) == (6, 0)
    assert block["membership"]["auc"] == 1
    assert all(row["loss_gap"] > 0 for row in record["noise_levels"])
    assert {name: own["levels"][0]["auc"] for name, own in record["membership"].items()}["loss"] == 1
    assert record["extraction"]["distinct"]["approximate"] > 0
    assert pictures["half"].shape == (3, 4, 3, 8, 8)


def test_a_part_that_is_on_record_is_skipped_and_others_are_refused(tmp_path: Path) -> None:
    for name in ("train", "unseen"):
        np.save(tmp_path / f"{name}.npy", np.zeros((2, 3, 8, 8), np.uint8))
    (tmp_path / "diffusion-12.json").write_text('{"complete": true}')
    options = ["--images", str(tmp_path), "--out", str(tmp_path), "--small", "--only"]
    assert ended("diffusion", *options, "12").out.startswith("all done")
    assert ended("diffusion", *options, "13").err == "There is no part '13'; choose from 12, 40, 40-longest."


@pytest.mark.parametrize(("device", "expected"), [("cuda", "bfloat16 by the library"), ("cpu", "as kernels say")])
def test_records_name_the_arithmetic_that_layers_had(device: str, expected: str) -> None:
    """Autocast takes layers away from our kernels on a GPU, whatever the kernels say of themselves."""
    network = DenoiserRecipe(settings={"widths": (16,)}).make_network((3, 8, 8))
    runtime = SimpleNamespace(device=torch.device(device), arithmetic="as kernels say")
    assert attacks.arithmetic_of(attacks.denoiser_of(attacks.InBfloat16(network)).at(0.2), runtime) == expected
    assert attacks.arithmetic_of(attacks.denoiser_of(network).at(0.2), runtime) == "as kernels say"


@pytest.mark.slow
def test_a_part_that_trains_in_a_folder_is_attacked_and_recorded(tmp_path: Path) -> None:
    for seed, name in enumerate(("train", "unseen")):
        values = np.random.default_rng(seed).integers(0, 256, (48, 3, 8, 8))
        np.save(tmp_path / f"{name}.npy", values.astype(np.uint8))
    ended("diffusion", "--images", str(tmp_path), "--out", str(tmp_path), "--small", "--only", "40-longest")
    record = read_json(tmp_path / "diffusion-40-longest.json")
    assert record["complete"]
    assert [(one["steps"], one["epochs"]) for one in record["checkpoints"]] == [(4, 4 * 8 / 40)]
    assert (tmp_path / "diffusion-40-longest" / "training-state.safetensors").exists()


@pytest.mark.slow
def test_steps_alone_are_timed_at_fixed_and_falling_noise_levels(tmp_path: Path) -> None:
    assert "--images FOLDER is needed" in ended("diffusion", "--out", str(tmp_path), "--small").err
    ended("diffusion", "--out", str(tmp_path), "--small", "--speed", "--device", "cpu")
    speed = read_json(tmp_path / "speed.json")["speed"]
    assert speed.keys() == {"bfloat16", "float32"}
    for rows in speed.values():
        assert [(row["batch"], row["annealed"]) for row in rows] == [(2, False), (4, False), (2, True), (4, True)]
        assert all(row["ratio"] > 0 for row in rows)
