"""Blur of unknown width: exact in the Fourier domain, and found by the unchanged blind method."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Blind, InputError, KnownMask, Score, load, observe
from recollect.degradation import Blur
from recollect.degradation.blur import FINEST
from tests.degradation.dense import dense_prox, matrix
from tests.planted import Memorizer

STORED = load("photos?count=12&size=16")
MEMORIZER = Memorizer(STORED.pixels)


def blur(*widths: float) -> Blur:
    return Blur(torch.tensor(widths))


def test_it_is_the_circular_convolution_with_a_gaussian() -> None:
    """Against a sum over all pixels and their copies around, which is what wrapping around means."""
    width, size = 1.2, 8
    grid = torch.arange(size, dtype=torch.float64)
    copies = torch.arange(-6, 7, dtype=torch.float64) * size
    distance = (grid[:, None] - grid)[..., None] + copies
    line = torch.exp(-(distance**2) / (2 * width**2)).sum(-1) / (width * math.sqrt(2 * math.pi))
    x = torch.rand(1, 2, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(
        blur(width).apply(x), line @ x @ line, atol=2e-3
    )  # a sampled Gaussian, not a band-limited one


def test_no_width_changes_nothing_and_the_mean_stays() -> None:
    x = STORED.pixels
    assert torch.allclose(blur(0.0).apply(x), x, atol=1e-6)
    assert torch.allclose(blur(2.5).apply(x).mean((2, 3)), x.mean((2, 3)), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 4), st.floats(0.02, 4), st.integers(0, 1000))
def test_prox_minimises_its_objective(width: float, gamma: float, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    z, y = torch.rand(2, 1, 2, 6, 5, dtype=torch.float64, generator=draw)
    truth = Blur(torch.tensor([width], dtype=torch.float64))
    expected = dense_prox(matrix(truth, (6, 5)), z, y, gamma)
    assert torch.allclose(truth.prox(z, y, gamma), expected, atol=1e-9)


@pytest.mark.parametrize("width", [0.0, 0.5, 1.0, 2.33, 4.7, 8.0])
def test_refit_finds_the_width_that_brute_force_finds(width: float) -> None:
    x = STORED.pixels.double()
    y = blur(width).apply(x) + 0.01 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    found = Blur.first_guess(y).refit(x, y).width
    tried = torch.arange(0, 8, 0.01, dtype=torch.float64)
    misfits = torch.stack([(Blur(w[None]).apply(x) - y).square().flatten(1).sum(1) for w in tried])
    assert ((Blur(found).apply(x) - y).square().flatten(1).sum(1) <= misfits.amin(0) + 1e-4).all()
    assert torch.allclose(found, tried[misfits.argmin(0)], atol=0.02)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.3, 4), st.integers(0, 1000))
def test_refit_finds_any_width_between(width: float, seed: int) -> None:
    x = torch.rand(2, 2, 12, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    y = blur(width).apply(x)
    found = Blur.first_guess(y).refit(x, y).width
    assert torch.allclose(found, torch.tensor(width, dtype=torch.float64), atol=2 * FINEST)


def test_nothing_is_pasted() -> None:
    """To divide by the damping would restore a lightly blurred image without any memory of it."""
    x = STORED.pixels
    light = blur(0.5)
    assert light.paste(x, light.apply(x)) is x


@pytest.mark.parametrize("width", [0.6, 1.0, 1.55, 2.0])
def test_blind_recovers_image_and_width(width: float) -> None:
    seen = observe(STORED, blur(width))
    found = Blind(start=Blur.first_guess)(MEMORIZER, seen.y)
    assert Score.of(found.estimate, STORED.pixels).accurate.value == 1
    assert torch.allclose(found.degradation.width, torch.tensor(width), atol=1e-2)  # type: ignore[union-attr]


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_the_known_width_recovers_too_and_others_are_not_recovered(width: float) -> None:
    seen = observe(STORED, blur(width))
    assert Score.of(KnownMask()(MEMORIZER, seen.y, seen.truth).estimate, STORED.pixels).accurate.value == 1
    strangers = load("photos?count=6&size=16&part=control")
    seen = observe(strangers, blur(width))
    blind, known = Blind(start=Blur.first_guess)(MEMORIZER, seen.y), KnownMask()(MEMORIZER, seen.y, seen.truth)
    for found in (blind, known):
        assert Score.of(found.estimate, strangers.pixels).approximate.count == 0


@pytest.mark.parametrize("width", [-1.0, math.inf, math.nan])
def test_a_width_that_is_none_is_refused(width: float) -> None:
    with pytest.raises(InputError, match="zero or more"):
        blur(width)


def test_widths_of_another_form_are_refused() -> None:
    with pytest.raises(InputError, match="tensor of N numbers"):
        Blur(torch.tensor([1, 2]))
