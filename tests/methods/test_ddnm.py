import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from recollect import Erasure, InputError, Stop, mask
from recollect.degradation import Degradation, random_mask
from recollect.diffusion import bundled
from recollect.methods import DDNM
from recollect.methods.ddnm import SPACINGS, ddnm, time_steps
from tests.gaussian import GaussianPrior

SHAPE = (3, 4, 4)


def untouchable(_x: Tensor) -> Tensor:
    raise AssertionError("DDNM must never call the autoencoder")


def restored(method: DDNM, x: Tensor, truth: Erasure, **options: Any) -> Tensor:
    return method(untouchable, truth.expand(x).apply(x), truth, **options).estimate


def transcription(
    prior: GaussianPrior, y: np.ndarray, m: np.ndarray, rng: np.random.Generator, eta: float, times: Sequence[int]
) -> np.ndarray:
    """The formulas of the method, for one image, in numpy and float64; `times` with the noisiest last."""
    abar = prior.alphas_cumprod.numpy()
    x = rng.standard_normal(y.shape, dtype=np.float32).astype(np.float64)
    for i in range(len(times) - 1, -1, -1):
        t, previous = times[i], times[i - 1]
        a, a_next = abar[t], abar[previous] if i > 0 else 1.0
        e = prior.noise(torch.from_numpy(x)[None], t)[0].numpy()
        x0 = (x - np.sqrt(1 - a) * e) / np.sqrt(a)
        x0 = x0 - m * (m * x0 - y)
        noise = rng.standard_normal(y.shape, dtype=np.float32) if i > 0 else 0.0
        x = np.sqrt(a_next) * x0 + np.sqrt(1 - a_next) * (eta * noise + np.sqrt(1 - eta**2) * e)
    return x


@given(st.integers(0, 50), st.integers(1, 30), st.sampled_from([0.0, 0.5, 0.85, 1.0]), st.sampled_from(SPACINGS))
def test_it_is_the_update_of_the_paper(seed: int, steps: int, eta: float, spacing: str) -> None:
    prior = GaussianPrior.low_rank(SHAPE, rank=5, seed=seed, length=60)
    keep = random_mask(0.5, SHAPE, count=2, seed=seed).keep.expand(-1, 3, -1, -1)
    y = torch.where(keep, 2 * prior.sample(2, seed) - 1, 0)
    draws = [np.random.default_rng([seed, i]) for i in range(2)]
    found = ddnm(prior, y, keep, draws, steps=steps, eta=eta, spacing=spacing)
    times = [60 * i // steps for i in range(steps)]
    times = sorted({round(t * t / (times[-1] or 1)) for t in times}) if spacing == "quadratic" else times
    for i in range(2):
        rng = np.random.default_rng([seed, i])
        expected = transcription(prior, y[i].numpy(), keep[i].numpy().astype(float), rng, eta, times)
        assert np.allclose(found[i].numpy(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("eta", [0.0, 0.85, 1.0])
def test_where_the_kept_pixels_determine_the_image_it_is_found(eta: float) -> None:
    """About 19 kept values for the 2 unknowns of a rank-2 Gaussian: only one image is possible."""
    prior = GaussianPrior.low_rank(SHAPE, rank=2, length=1000)
    x = prior.sample(4)
    truth = random_mask(0.6, SHAPE, count=4, seed=3)
    estimate = restored(DDNM(prior, steps=200, eta=eta), x, truth)
    assert float((estimate - x).abs().max()) < 1e-2  # the last step still has noise of 0.0016
    assert float((x - prior.sample(4, seed=2)).abs().max()) > 0.1  # the images do differ


def spread_by_formula(prior: GaussianPrior, eta: float, steps: int) -> Tensor:
    """For independent values the update is linear in x: the standard deviation that its draws add up to."""
    c, variance = prior.covariance.diagonal(), torch.ones(len(prior.mean), dtype=torch.float64)
    a = [float(prior.alphas_cumprod[t]) for t in time_steps(len(prior.alphas_cumprod), steps)] + [1.0]
    for now, after in itertools.pairwise(a):
        seen = now * c + 1 - now
        slope = (after * now) ** 0.5 * c / seen + ((1 - after) * (1 - eta**2) * (1 - now)) ** 0.5 / seen
        variance = slope**2 * variance + (1 - after) * eta**2
    return variance.sqrt()


@pytest.mark.parametrize("eta", [0.0, 0.85])
def test_where_they_say_nothing_the_rest_is_drawn_around_the_priors_mean(eta: float) -> None:
    """Independent values: the posterior mean of an erased one is the prior's. Only eta = 0 draws from the prior itself;
    fresh noise is taken out again by averages, so that more of it leaves less spread."""
    prior = GaussianPrior.independent((1, 2, 4), length=400)
    truth = Erasure(torch.tensor([[True, False, False, True], [False, True, False, False]])[None, None])
    x, erased = prior.sample(3000), ~truth.keep.flatten()
    estimate = (2 * restored(DDNM(prior, steps=200, eta=eta), x, truth).flatten(1) - 1)[:, erased]
    expected, own = spread_by_formula(prior, eta, 200)[erased], prior.covariance.diagonal().sqrt()[erased]
    off = (estimate.mean(0) - prior.mean[erased]).abs() / (expected / math.sqrt(len(x)))
    assert float(off.max()) < 5  # standard errors
    assert torch.allclose(estimate.std(0), expected, rtol=0.07)
    assert bool((expected < 0.9 * own).all()) if eta else torch.allclose(expected, own, rtol=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kept_values_end_exactly_as_they_were(dtype: torch.dtype) -> None:
    x = torch.rand(5, *SHAPE, dtype=dtype, generator=torch.Generator().manual_seed(1))
    truth = random_mask(0.5, SHAPE, count=5, seed=1)
    found = DDNM(GaussianPrior.low_rank(SHAPE, 4), steps=10)(untouchable, truth.apply(x), truth)
    assert found.estimate.dtype == dtype
    keep = truth.expand(x).keep
    assert torch.equal(found.estimate[keep], x[keep])
    assert bool((found.estimate != truth.apply(x))[~keep].all())
    assert found.stops == [Stop.DONE] * 5
    assert found.steps.tolist() == [0] * 5  # of the autoencoder
    assert found.degradation is not None


def test_an_image_has_the_same_result_in_every_company() -> None:
    prior = GaussianPrior.low_rank(SHAPE, 6)
    x, truth = prior.sample(7).float(), random_mask(0.7, SHAPE, count=7, seed=5)
    method = DDNM(prior, steps=20)
    together = restored(method, x, truth)
    assert torch.allclose(together, restored(method, x, truth, chunk=3), atol=1e-6)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    assert torch.allclose(together[order], restored(method, x[order], truth[order]), atol=1e-6)
    assert torch.allclose(together[2:3], restored(method, x[2:3], truth[2:3]), atol=1e-6)


def test_several_draws_are_their_mean() -> None:
    prior = GaussianPrior.low_rank(SHAPE, rank=5)
    x, truth = prior.sample(3).float(), mask("half", SHAPE)
    one, two = (restored(DDNM(prior, steps=5, seed=seed), x, truth) for seed in (7, 8))
    both = restored(DDNM(prior, steps=5, seed=7, draws=2), x, truth)
    assert not torch.allclose(one, two, atol=1e-2)
    assert torch.allclose(both, (one + two) / 2, atol=1e-6)
    with pytest.raises(InputError, match="draws is a number of restorations"):
        DDNM(prior, steps=5, draws=0)


def test_the_seed_decides_the_draw() -> None:
    prior = GaussianPrior.independent(SHAPE)
    x, truth = prior.sample(2).float(), mask("half", SHAPE)
    method = DDNM(prior, steps=10)
    assert torch.equal(restored(method, x, truth), restored(method, x, truth))
    assert not torch.allclose(restored(method, x, truth), restored(replace(method, seed=1), x, truth), atol=1e-2)


@pytest.mark.parametrize("small", [(3, 4, 4), (3, 8, 4), (3, 2, 8)])
def test_smaller_images_are_restored_at_the_priors_size(small: tuple[int, int, int]) -> None:
    """The prior's 8x8 images differ in one number, so what is kept of a small one says all of it."""
    prior = GaussianPrior.low_rank((3, 8, 8), rank=1, length=1000)
    x = torch.nn.functional.adaptive_avg_pool2d(prior.sample(3, seed=2), small[1:])
    truth = random_mask(0.5, small, count=3, seed=2)
    assert float((restored(DDNM(prior, steps=200), x, truth) - x).abs().max()) < 1e-2
    assert float((x[0] - x[1]).abs().max()) > 0.05


def test_kept_values_are_exact_at_any_scale() -> None:
    x, truth = torch.rand(2, 3, 6, 5), random_mask(0.5, (3, 6, 5), count=2, seed=2)
    estimate = restored(DDNM(GaussianPrior.low_rank((3, 8, 8), 3), steps=5), x, truth)
    keep = truth.expand(x).keep
    assert torch.equal(estimate[keep], x[keep])
    assert bool(torch.isfinite(estimate).all())


def test_clipping_keeps_the_clean_estimate_in_range() -> None:
    wide = GaussianPrior(
        torch.full((48,), 0.9).double(), torch.eye(48).double() * 4, SHAPE, torch.linspace(0.99, 0.01, 50)
    )
    x, truth = torch.full((4, *SHAPE), 0.5) + torch.arange(4).view(-1, 1, 1, 1) / 100, mask("half", SHAPE)
    free, clipped = (restored(DDNM(wide, steps=10, clip=clip), x, truth) for clip in (False, True))
    assert float(free.max()) > 1
    assert 0 <= float(clipped.min()) <= float(clipped.max()) <= 1


def test_values_that_stop_being_finite_are_told() -> None:
    prior = GaussianPrior.low_rank(SHAPE, 2)
    broken = replace(prior, mean=prior.mean * math.nan)
    x, truth = prior.sample(2), mask("half", SHAPE)
    found = DDNM(broken, steps=5)(untouchable, truth.apply(x), truth)
    assert found.stops == [Stop.DIVERGED] * 2
    assert torch.equal(found.estimate, truth.apply(x))


def test_the_time_steps_are_spread_evenly_and_end_at_the_cleanest() -> None:
    assert time_steps(1000, 100) == list(range(990, -1, -10))
    assert time_steps(5, 5) == [4, 3, 2, 1, 0]
    assert time_steps(1000, 3) == [666, 333, 0]


def test_quadratic_time_steps_are_closer_together_the_less_noise_is_left() -> None:
    times = time_steps(1000, 100, "quadratic")
    assert (times[0], times[-1], len(times)) == (990, 0, 98)  # 0 three times
    gaps = -np.diff(times)
    assert (gaps > 0).all()
    assert (np.diff(gaps) <= 1).all()  # falling, but for rounding
    assert (gaps[0], gaps[-1]) == (20, 1)
    assert time_steps(10, 1, "quadratic") == [0]


def test_what_it_cannot_restore_is_refused_in_a_sentence() -> None:
    prior = GaussianPrior.low_rank((3, 4, 4), 2)

    def try_(shape: tuple[int, int, int]) -> None:
        DDNM(prior, steps=5)(untouchable, torch.zeros(1, *shape), mask("half", shape))

    with pytest.raises(InputError, match="The prior knows colour images and was given grey images; open a prior for"):
        try_((1, 4, 4))
    with pytest.raises(InputError, match=r"The images are 8x8 and the prior knows 4x4; .* of at least their size"):
        try_((3, 8, 8))
    with pytest.raises(InputError, match="The images are 4x5 and the prior knows 4x4"):
        try_((3, 5, 4))
    with pytest.raises(InputError, match="the truth is an Erasure, not a Other"):
        DDNM(prior, steps=5)(untouchable, torch.zeros(1, 3, 4, 4), Other())


class Other(Degradation):
    """A degradation of another kind."""


def test_settings_that_cannot_be_run_with_are_refused() -> None:
    prior = GaussianPrior.low_rank(SHAPE, 2, length=50)
    for steps in (0, 51, True, 2.5):
        with pytest.raises(InputError, match=f"from 1 to the prior's 50 time steps, got {steps}"):
            DDNM(prior, steps=steps)  # type: ignore[arg-type]
    for eta in (-0.1, 1.5, math.nan, "x"):
        with pytest.raises(InputError, match="eta is the share of fresh noise"):
            DDNM(prior, steps=5, eta=eta)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="A seed is a whole number"):
        DDNM(prior, steps=5, seed="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="There is no spacing 'odd'; choose from even, quadratic"):
        DDNM(prior, steps=5, spacing="odd")
    with pytest.raises(InputError, match=r"A prior is what recollect.diffusion.open_denoiser gives, not a str"):
        DDNM("google/ddpm-cifar10-32")  # type: ignore[arg-type]


@pytest.mark.gpu
def test_it_gives_the_same_on_a_gpu() -> None:
    prior = GaussianPrior.low_rank((3, 8, 8), 6)
    x, truth = prior.sample(5).float(), random_mask(0.5, (3, 8, 8), count=5)
    method = DDNM(prior, steps=50)
    here = restored(method, x, truth)
    there = method(untouchable, truth.apply(x).cuda(), truth.to("cuda")).estimate
    assert there.device.type == "cuda"
    assert torch.allclose(here, there.cpu(), atol=1e-4)


def test_a_schedule_that_ends_in_noise_alone_is_refused_where_it_is_reached() -> None:
    prior = GaussianPrior.low_rank(SHAPE, 2, length=50)
    prior.alphas_cumprod[-1] = 0
    with pytest.raises(InputError, match="At time step 49 the prior's images are noise alone"):
        DDNM(prior, steps=50)
    DDNM(prior, steps=10)  # from time step 45


def test_a_prior_in_half_precision_is_named_and_not_the_images() -> None:
    prior = bundled().half()
    truth = mask("half", (3, 32, 32))
    with pytest.raises(InputError, match=r"The prior computes in torch.float16; .*prior.float"):
        DDNM(prior, steps=1)(None, torch.rand(1, 3, 32, 32), truth)
