from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected
from recollect.training import Recipe
from recollect.training.optimizers import WIDE, Adam, Muon, gram_in_bands, orthogonalize
from recollect.training.stepper import Stepper


def parameters(seed: int = 0) -> list[Tensor]:
    """Two matrices of one shape, a tall one, a convolution, vectors."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(6, 8), (6, 8), (12, 4), (5, 3, 3, 3), (6,), (1,)]
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def draw_gradients(weights: Sequence[Tensor], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for p in weights:
        p.grad = torch.randn(p.shape, generator=generator)


@pytest.mark.parametrize("shape", [(16, 16), (8, 32), (32, 8), (3, 10, 20)])
def test_orthogonalizing_keeps_the_singular_vectors_and_evens_the_values(
    shape: tuple[int, ...], rng: torch.Generator
) -> None:
    """Against the SVD: U V^T is the nearest orthogonal matrix; five Newton-Schulz steps come roughly there."""
    m = torch.randn(*shape, generator=rng)
    u, s, vt = torch.linalg.svd(m, full_matrices=False)
    inner = u.mT @ orthogonalize(m.reshape(-1, *m.shape[-2:])).reshape(m.shape) @ vt.mT
    values = torch.diagonal(inner, dim1=-2, dim2=-1)
    assert torch.allclose(inner, torch.diag_embed(values), atol=1e-4)  # the same vectors
    large = s > 0.05 * s.amax(-1, keepdim=True)
    assert float(values[large].min()) > 0.6
    assert float(values.max()) < 1.3


def test_orthogonalizing_does_not_care_about_scale(rng: torch.Generator) -> None:
    m = torch.randn(8, 8, generator=rng)
    assert torch.allclose(orthogonalize(m[None]), orthogonalize(1e-12 * m[None]), atol=1e-4)
    assert torch.equal(orthogonalize(torch.zeros(1, 4, 4)), torch.zeros(1, 4, 4))


def weakest_direction(side: int, rng: torch.Generator, **options: int) -> float:
    """What a square matrix of falling singular values is given in the direction it says least about."""
    u, v = (torch.linalg.qr(torch.randn(side, side, generator=rng)).Q for _ in range(2))
    m = (u * torch.arange(1, side + 1).pow(-1.2)) @ v.T
    return float(torch.diagonal(u.T @ orthogonalize(m[None], **options)[0] @ v).min())


def test_wide_matrices_get_the_steps_that_their_small_singular_values_need(rng: torch.Generator) -> None:
    assert weakest_direction(WIDE, rng) < 0.3  # five steps leave it behind
    assert weakest_direction(WIDE + 1, rng) > 0.6
    assert weakest_direction(WIDE, rng, steps=7) > 0.6
    assert weakest_direction(WIDE + 1, rng, steps=5) < 0.3


def after_one_step(images: int, **settings: Any) -> Tensor:
    """Weights of a network of width 30 after one step with Muon, by the recipe but for the settings given."""
    network = FullyConnected((1, 8, 8), layers=3, width=30)
    recipe = replace(Recipe.for_network(network, images, optimizer="muon"), **settings)
    pixels = torch.rand(images, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    Stepper(network, pixels, recipe).run(1)
    return nn.utils.parameters_to_vector(network.parameters()).detach()


@pytest.mark.parametrize(("images", "steps"), [(10, 5), (100, 7)], ids=["fewer than the width", "more"])
def test_the_recipe_says_how_many_newton_schulz_steps_muon_takes(images: int, steps: int) -> None:
    by_recipe = after_one_step(images)
    assert torch.equal(by_recipe, after_one_step(images, newton_schulz_steps=steps))
    assert not torch.equal(by_recipe, after_one_step(images, newton_schulz_steps=steps + 1))


@pytest.mark.parametrize("shape", [(2, 8, 11), (1, 1, 3), (3, 5, 2), (2, 9, 9)])
def test_a_gram_matrix_in_bands_is_the_gram_matrix(shape: tuple[int, ...], rng: torch.Generator) -> None:
    x = torch.randn(*shape, generator=rng)
    assert torch.allclose(gram_in_bands(x), x @ x.mT, atol=1e-5)
    assert torch.equal(gram_in_bands(x), gram_in_bands(x).mT)


def test_muon_in_one_batch_is_muon_matrix_by_matrix() -> None:
    """Slow and obvious: one matrix at a time, straight from the definition."""
    weights, rate, momentum = parameters(), 0.1, 0.95
    plain = [p.detach().clone() for p in weights[:4]]
    buffers = [torch.zeros_like(p).flatten(1) for p in plain]
    muon = Muon(weights, rate=rate)
    for step in range(3):
        draw_gradients(weights, step)
        for p, buffer, weight in zip(plain, buffers, weights[:4], strict=True):
            g = weight.grad.flatten(1)  # type: ignore[union-attr]
            buffer.mul_(momentum).add_((1 - momentum) * g)
            update = orthogonalize(((1 - momentum) * g + momentum * buffer)[None])[0]
            p -= rate * max(1, update.shape[0] / update.shape[1]) ** 0.5 * update.view_as(p)
        muon.step()
    for p, weight in zip(plain, weights[:4], strict=True):
        assert torch.allclose(p, weight, atol=1e-5)


def test_muon_leaves_vectors_to_adam() -> None:
    weights, alone = parameters(), parameters()[4:]
    muon, adam = Muon(weights, rate=0.1, vector_ratio=0.5), torch.optim.Adam(alone, lr=0.05, betas=(0.9, 0.99))
    for step in range(3):
        draw_gradients(weights, step)
        for p, weight in zip(alone, weights[4:], strict=True):
            p.grad = weight.grad
        muon.step()
        adam.step()
    for p, weight in zip(alone, weights[4:], strict=True):
        assert torch.allclose(p, weight, atol=1e-6)


@pytest.mark.parametrize("kind", [Adam, Muon])
@pytest.mark.parametrize("steps", [0, 3])
def test_a_loaded_state_goes_on_to_the_bit(kind: Callable[..., Adam | Muon], steps: int) -> None:
    weights = parameters()
    first = kind(weights, rate=0.1)
    for step in range(steps):
        draw_gradients(weights, step)
        first.step()
    copies = [nn.Parameter(p.detach().clone()) for p in weights]
    second = kind(copies, rate=0.1)
    second.load_state({name: t.clone() for name, t in first.state().items()})
    for step in range(steps, steps + 3):
        draw_gradients(weights, step)
        draw_gradients(copies, step)
        first.step()
        second.step()
    assert all(torch.equal(a, b) for a, b in zip(weights, copies, strict=True))


@pytest.mark.parametrize("kind", [Adam, Muon])
def test_moments_are_loaded_in_the_layout_of_their_weights(kind: Callable[..., Adam | Muon]) -> None:
    """Fused kernels walk through memory: a channels-last weight needs channels-last moments."""
    conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = kind(conv.parameters(), rate=0.1)
    draw_gradients(list(conv.parameters()), 0)
    optimizer.step()
    saved = {name: t.contiguous().clone() for name, t in optimizer.state().items()}
    optimizer.load_state(saved)
    inner = optimizer.adam if isinstance(optimizer, Adam) else optimizer.vectors
    for p, state in inner.state.items():
        assert state["exp_avg"].stride() == p.stride()
        assert not state["exp_avg"].requires_grad
    assert all(torch.equal(t, saved[name]) for name, t in optimizer.state().items())


@pytest.mark.parametrize("kind", [Adam, Muon])
def test_a_new_rate_is_the_rate_of_the_next_step(kind: Callable[..., Adam | Muon]) -> None:
    moved = []
    for rate in (0.1, 0.01):
        weights = parameters()
        before = [p.detach().clone() for p in weights]
        optimizer = kind(weights, rate=0.1)
        optimizer.set_rate(rate)
        draw_gradients(weights, 0)
        optimizer.step()
        moved.append([float((p.detach() - b).abs().max()) for p, b in zip(weights, before, strict=True)])
    assert moved[0] == pytest.approx([10 * m for m in moved[1]], rel=1e-3)
