import numpy as np
import pytest
import torch

from recollect.seeding import BLOCK, HELD, own_bytes, own_draws


def draws(images: torch.Tensor, seed: int = 42) -> list[float]:
    return [float(rng.random()) for rng in own_draws(images, seed)]


def test_a_draw_belongs_to_the_image() -> None:
    images = torch.rand(5, 1, 3, 3)
    assert draws(images) == draws(images.flip(0))[::-1]
    assert draws(images[2:3]) == draws(images)[2:3]
    assert len(set(draws(images))) == 5


def test_many_images_keep_their_order() -> None:
    images = torch.rand(3 * BLOCK + 5, 1, 2, 2)
    assert draws(images) == [draws(image[None])[0] for image in images]


def test_the_seed_matters_and_the_precision_does_not() -> None:
    images = torch.rand(2, 1, 3, 3)
    assert draws(images) == draws(images.double())
    assert not set(draws(images)) & set(draws(images, seed=43))


def test_a_draw_is_stable() -> None:
    """As first drawn: another value would change every stored result."""
    assert draws(torch.zeros(1, 1, 2, 2)) == [0.44090521376063385]


def test_the_global_generators_are_left_alone() -> None:
    before = torch.get_rng_state()
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    draws(torch.rand(2, 1, 3, 3, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(torch.get_rng_state(), before)
    assert str(np.random.get_state(legacy=False)) == str(state)  # noqa: NPY002


@pytest.mark.parametrize("count", [1, 7, 8, 13, 1536])
def test_bytes_are_those_of_the_generators(count: int) -> None:
    images = torch.rand(BLOCK + 3, 1, 2, 2)
    expected = [rng.integers(0, 256, count, np.uint8) for rng in own_draws(images, 42)]
    assert np.array_equal(own_bytes(images, 42, count), expected)


def test_images_are_seeded_in_parts_alike() -> None:
    """More images than are held at a time."""
    images = torch.rand(HELD + 3, 1, 1, 2)
    whole = own_bytes(images, 42, 4)
    for position in (0, HELD - 1, HELD, HELD + 2):
        assert np.array_equal(whole[position : position + 1], own_bytes(images[position : position + 1], 42, 4))
