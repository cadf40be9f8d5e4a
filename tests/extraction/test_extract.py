import json
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from recollect import FullyConnected, Images, InputError
from recollect.degradation import all_erased
from recollect.diffusion import Denoiser, open_denoiser
from recollect.diffusion.library import diffusers
from recollect.extraction import extract
from recollect.methods import admm
from tests.auditing.making import images as bright
from tests.diffusion.folders import unet
from tests.diffusion.making import memory_of, pictures, posterior_mean
from tests.planted import Memorizer


def test_samples_of_a_diffusion_model_that_memorized_are_its_training_images() -> None:
    images = pictures(5)
    found = extract(memory_of(images), images, samples=24, steps=10)
    assert found.distinct["approximate"] == found.distinct["patches"] == 5
    assert found.evaluations == 24 * 19
    assert found.evaluations_each == pytest.approx(24 * 19 / 5)
    assert found.stored is None
    assert str(found).startswith("5 of the 5 training images appeared among 24 samples (from noise in 10 steps)")
    facts = json.loads(json.dumps(found.to_dict()))
    assert sum(facts["captures"].values()) == 24
    others = extract(memory_of(images), pictures(5, seed=1), samples=24, steps=10)
    assert others.distinct == {"accurate": 0, "approximate": 0, "patches": 0}
    assert others.evaluations_each is None


def test_attractors_of_an_autoencoder_that_memorized_are_its_training_images() -> None:
    stored = bright(6, 1)
    found = extract(Memorizer(stored.pixels), stored, samples=60)
    assert found.distinct["accurate"] == 6
    assert found.stored is not None
    assert found.stored.at_least <= 6
    assert found.evaluations > 60
    assert "By capture and recapture the model stores at least" in str(found)
    with_unseen = extract(Memorizer(stored.pixels), stored, control=bright(4, 2), samples=12)
    assert "unseen images" in with_unseen.kind
    assert set(found.by_start) == {"noise", "constant", "smooth", "blend"}
    assert set(with_unseen.by_start) - set(found.by_start) == {"unseen image", "blend of unseen images"}
    copies = found.to_dict()["captures"]
    assert sum(row["copies"] for row in found.by_start.values()) == sum(copies.values())
    assert all(row["distinct"] <= len(copies) for row in found.by_start.values())


def test_a_model_is_given_no_more_images_at_once_than_it_may() -> None:
    stored, given = bright(20, 1), list[int]()
    memory = Memorizer(stored.pixels)

    def model(x: Tensor) -> Tensor:
        given.append(len(x))
        return memory(x)

    extract(model, stored, samples=12, chunk=5)
    assert max(given) == 5


@pytest.mark.parametrize("steps", [2, 5])
def test_admm_with_every_pixel_erased_is_iteration(steps: int) -> None:
    """So an extraction that iterates from a constant has run it: its v is f(v), and it returns 2 v - (the v before)."""
    stored = bright(6, 1)
    f, y = Memorizer(stored.pixels, sharpness=0.05), torch.zeros_like(stored.pixels[:1])
    v = [torch.full_like(y, 0.5)]
    for _ in range(steps):
        v.append(f(v[-1]))
    erased = admm(f, y, all_erased(y), gamma=0.5, steps=steps, origin=0.5)
    assert torch.allclose(erased, 2 * v[steps - 1] - v[steps - 2], atol=1e-6)
    assert not torch.allclose(v[steps], v[0], atol=1e-3)


def test_a_model_that_cannot_take_the_images_is_refused_first() -> None:
    scripted = torch.jit.script(torch.nn.Linear(8, 8))
    with pytest.raises(InputError, match=r"cannot take images of 3x9x9 \(.*mat1 and mat2 shapes.*size=N"):
        extract(scripted, Images(torch.rand(4, 3, 9, 9)), samples=8)


def test_an_untrained_network_gives_nothing_away() -> None:
    images = bright(6, 1)
    found = extract(FullyConnected(images.shape, layers=2, width=16), images, samples=10)
    assert found.distinct["approximate"] == 0
    assert found.stored is not None
    assert found.stored.at_least == 0


def failing(images: Images, fails: Callable[[Tensor, Tensor], Tensor]) -> Denoiser:
    """A memory whose answers for some images at some noise levels are not finite."""
    memory = posterior_mean(2 * images.pixels - 1)

    def denoise(x: Tensor, sigma: Tensor) -> Tensor:
        return memory(x, sigma).masked_fill(fails(x, sigma).view(-1, 1, 1, 1), math.nan)

    return Denoiser.of(denoise, images.image_shape, "failing")


def test_a_denoiser_without_one_finite_sample_is_refused() -> None:
    """It memorized all: that nothing appeared among its samples would be false comfort."""
    images = pictures(5)
    model = failing(images, lambda x, sigma: (sigma > 10).expand(len(x)))
    with pytest.raises(InputError, match=r"None of 8 samples is finite, .* denoiser failing returns .*, 0.002 to 80"):
        extract(model, images, samples=8, steps=5)


def test_samples_that_are_not_finite_are_counted_and_told() -> None:
    images = pictures(5)
    model = failing(images, lambda x, sigma: (sigma > 10) & (x.mean((1, 2, 3)) > 0))
    found = extract(model, images, samples=24, steps=10)
    assert 0 < found.not_finite < 24
    assert found.to_dict()["not_finite"] == found.not_finite == int(found.samples.isnan().flatten(1).any(1).sum())
    assert f"{found.not_finite} of the 24 samples held NaN or infinite values" in str(found)
    assert sum(found.to_dict()["captures"].values()) == 24 - found.not_finite  # all others are copies
    whole = extract(memory_of(images), images, samples=8, steps=10)
    assert (whole.not_finite, "infinite" in str(whole)) == (0, False)


def test_iterations_that_diverge_are_counted() -> None:
    """They keep their last finite values, which are no attractor."""
    stored = bright(6, 1)
    memory = Memorizer(stored.pixels)

    def f(x: Tensor) -> Tensor:
        return memory(x).masked_fill((x.mean((1, 2, 3)) < 0.4).view(-1, 1, 1, 1), math.nan)

    found = extract(f, stored, samples=60)
    assert 0 < found.not_finite < 60
    assert found.not_finite + sum(found.to_dict()["captures"].values()) == 60


def test_a_pipeline_is_sampled_like_the_denoiser_that_it_opens_as() -> None:
    schedule, images = diffusers().DDIMScheduler(1000), pictures(3)
    pipeline = diffusers().DDPMPipeline(unet(), schedule)
    found, expected = (extract(one, images, samples=3, steps=2) for one in (pipeline, open_denoiser(pipeline)))
    assert torch.equal(found.samples, expected.samples)
    assert found.kind == "from noise in 2 steps"
    of_classes = diffusers().DDPMPipeline(unet(num_class_embeds=4), schedule)
    assert extract(of_classes, images, samples=1, steps=2, label=3).evaluations == 3
    with pytest.raises(InputError, match="is class-conditional: give a class with label"):
        extract(of_classes, images, samples=1, steps=2)
    with pytest.raises(InputError, match="A label is the class of a class-conditional diffusion model"):
        extract(memory_of(images), images, samples=1, steps=2, label=3)


def test_what_cannot_be_extracted_is_refused() -> None:
    images = pictures(3)
    with pytest.raises(InputError, match="samples is a number of images"):
        extract(memory_of(images), images, samples=0)
    with pytest.raises(InputError, match="takes images of 3x8x8; these are 3x4x4"):
        extract(memory_of(images), Images(torch.rand(2, 3, 4, 4)))
