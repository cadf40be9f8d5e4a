"""ADMM from an estimate until it rests."""

import pytest
import torch

from recollect import Images, Stop, mask, observe
from recollect.degradation import AnyFill, fill_erased, half_kept
from recollect.engine import Autoencoder, prepare
from recollect.methods import admm
from recollect.methods import polish as polishing
from recollect.methods.polish import CHECK_EVERY, REST
from recollect.recovery import Recovery
from tests.planted import Memorizer

pytestmark = pytest.mark.usefixtures("both_paths")

STORED = Images(torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 0.9 + 0.05)
SEEN = observe(STORED, mask("half", STORED.shape))
THETA = SEEN.truth.expand(SEEN.y)
MEMORIZER = Memorizer(STORED.pixels)


def polish(
    f: Autoencoder, y: torch.Tensor, x: torch.Tensor, limits: torch.Tensor, chunk: int | None = None
) -> Recovery:
    with prepare(f, y, chunk) as runtime:
        return polishing.polish(runtime, y, x, THETA, gamma=0.5, limits=limits)


def steps(each: int) -> torch.Tensor:
    return torch.full((6,), each)


def test_it_takes_the_steps_of_admm() -> None:
    """From zero it is Algorithm 1: the same estimate after the same number of steps."""
    done = polish(MEMORIZER, SEEN.y, torch.zeros_like(SEEN.y), steps(CHECK_EVERY))
    expected = admm(MEMORIZER, SEEN.y, THETA, gamma=0.5, steps=CHECK_EVERY)
    assert torch.allclose(done.estimate, expected, atol=1e-6)


def test_every_image_has_a_limit_of_its_own() -> None:
    limits = torch.tensor([1, 7, 10, 13, 25, 40])
    done = polish(MEMORIZER, SEEN.y, torch.zeros_like(SEEN.y), limits, chunk=4)
    for i, limit in enumerate(done.steps.tolist()):
        assert limit <= limits[i]
        expected = admm(MEMORIZER, SEEN.y[i : i + 1], THETA[i : i + 1], gamma=0.5, steps=limit)
        assert torch.allclose(done.estimate[i : i + 1], expected, atol=1e-6)
    assert done.steps[:3].tolist() == [1, 7, 10]


def test_what_rests_already_costs_one_check() -> None:
    done = polish(MEMORIZER, SEEN.y, STORED.pixels, steps(200))
    assert done.stops == [Stop.CONVERGED] * 6
    assert done.steps.tolist() == [CHECK_EVERY] * 6
    assert (done.estimate - STORED.pixels).square().mean() < REST


def test_each_image_stops_on_its_own_and_chunks_change_nothing() -> None:
    begun = torch.where(torch.arange(6).view(-1, 1, 1, 1) < 3, STORED.pixels, torch.zeros_like(SEEN.y))
    done = polish(MEMORIZER, SEEN.y, begun, steps(200))
    assert done.steps[:3].max() < done.steps[3:].min()
    split = polish(MEMORIZER, SEEN.y, begun, steps(200), chunk=2)
    assert torch.equal(split.steps, done.steps)
    assert torch.allclose(split.estimate, done.estimate, atol=1e-6)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_an_image_that_diverges_keeps_its_last_finite_estimate(bad: float) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(len(x)).view(-1, 1, 1, 1) == 0, bad, MEMORIZER(x))

    done = polish(f, SEEN.y, STORED.pixels, steps(CHECK_EVERY))
    assert done.stops == [Stop.DIVERGED] + [Stop.CONVERGED] * 5
    assert torch.isfinite(done.estimate).all()


def test_one_that_never_rests_is_done_at_the_limit() -> None:
    moving = torch.rand(1000, 1, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    calls = iter(moving)
    done = polish(lambda x: next(calls).expand_as(x), SEEN.y, SEEN.y, steps(3 * CHECK_EVERY))
    assert done.stops == [Stop.DONE] * 6
    assert done.steps.tolist() == [3 * CHECK_EVERY] * 6


@pytest.mark.parametrize("limit", [1, CHECK_EVERY - 3, CHECK_EVERY + 5])
def test_the_limit_is_exact(limit: int) -> None:
    """Also where images that began later stand beside: a chunk of four, of which three rest at once."""
    zero = torch.zeros_like(SEEN.y)
    begun = torch.where(torch.arange(6).view(-1, 1, 1, 1) < 3, STORED.pixels, zero)
    done = polish(MEMORIZER, SEEN.y, begun, steps(limit), chunk=4)
    assert done.steps[3:].tolist() == [limit] * 3
    assert torch.allclose(done.estimate[3:], admm(MEMORIZER, SEEN.y, THETA, gamma=0.5, steps=limit)[3:], atol=1e-6)


def test_a_mask_is_found_along_the_way() -> None:
    """The erased half holds noise, and half of all pixels are taken for kept at first."""
    seen = observe(STORED, fill_erased(mask("half", STORED.shape), STORED, "noise"))
    with prepare(MEMORIZER, seen.y, 4) as runtime:
        start = AnyFill.keeping(half_kept(seen.y, seed=43).keep[:, :1], seen.y)
        done = polishing.polish(runtime, seen.y, seen.y, start, gamma=0.5, limits=steps(80), refit=True)
    assert done.stops == [Stop.CONVERGED] * 6
    truth = THETA.keep  # type: ignore[attr-defined]
    assert (done.degradation.keep == truth).float().mean() > 0.98  # type: ignore[union-attr]
    assert (done.estimate - STORED.pixels).square().mean() < 1e-7
