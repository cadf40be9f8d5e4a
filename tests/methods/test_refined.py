"""Refined: at least what blind finds, whatever erased pixels hold; never told the truth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch

from recollect import Blind, Images, InputError, KnownMask, Score, audit, load, mask, observe
from recollect.degradation import FILLS, SIX, Blur, Erasure, all_erased, fill_erased, half_kept
from recollect.engine import prepare
from recollect.methods import Refined
from recollect.methods.refined import EXPLAINED, PRICE, Restart
from recollect.recovery import Stop
from tests.planted import Memorizer

STORED = load("photos?count=12&size=16")
OTHERS = load("photos?count=8&size=16&part=control")
MEMORIZER = Memorizer(STORED.pixels)

pytestmark = pytest.mark.usefixtures("both_paths")


def accurate(recovered: torch.Tensor, images: Images = STORED) -> int:
    return Score.of(recovered, images.pixels).accurate.count


def test_a_plausible_mask_is_the_same_in_all_channels_and_fits_best_of_those() -> None:
    """Brute force over both choices of each pixel."""
    x, y = torch.rand(2, 4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    keep = Erasure(torch.ones_like(y, dtype=torch.bool)).plausible_refit(x, y).keep
    assert (keep == keep[:, :1]).all()
    costs = torch.stack([(h * x - y).square().sum(1) for h in (0, 1)])
    assert torch.equal(keep[:, 0].long(), costs.argmin(0))


@pytest.mark.parametrize("name", list(SIX))
def test_it_recovers_what_blind_does_and_pastes_the_kept_values(name: str) -> None:
    seen = observe(STORED, mask(name, STORED.shape))
    blind, refined = Blind()(MEMORIZER, seen.y), Refined()(MEMORIZER, seen.y)
    assert accurate(refined.estimate) >= accurate(blind.estimate)
    kept = refined.degradation.keep  # type: ignore[union-attr]
    assert torch.equal(refined.estimate[kept], seen.y[kept])


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("name", ["block", "scatter", "frame"])
def test_it_recovers_whatever_erased_pixels_hold(name: str, kind: str) -> None:
    seen = observe(STORED, fill_erased(mask(name, STORED.shape), STORED, kind))
    found = Refined()(MEMORIZER, seen.y)
    assert accurate(found.estimate) >= 10
    assert accurate(found.estimate) >= accurate(Blind()(MEMORIZER, seen.y).estimate)


@pytest.mark.parametrize("kind", FILLS)
def test_what_is_not_stored_is_not_recovered(kind: str) -> None:
    seen = observe(OTHERS, fill_erased(mask("half", OTHERS.shape), OTHERS, kind))
    assert Score.of(Refined()(MEMORIZER, seen.y).estimate, OTHERS.pixels).approximate.count == 0


def test_an_image_that_is_explained_is_not_tried_again() -> None:
    seen = observe(STORED, mask("block", STORED.shape))
    alone, tried = Refined(restarts=())(MEMORIZER, seen.y), Refined()(MEMORIZER, seen.y)
    moved = (MEMORIZER(alone.estimate) - alone.estimate).square().flatten(1).mean(1)
    explained = moved < EXPLAINED
    assert explained.any()
    assert torch.equal(tried.steps[explained], alone.steps[explained])
    assert torch.equal(tried.estimate[explained], alone.estimate[explained])


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("images", [STORED, OTHERS], ids=["stored", "others"])
@pytest.mark.parametrize("steps", [1, 2, 40])
def test_no_image_costs_more_than_three_times_what_blind_takes(kind: str, images: Images, steps: int) -> None:
    y = observe(images, fill_erased(mask("half", images.shape), images, kind)).y
    blind, refined = Blind(steps=steps)(MEMORIZER, y), Refined(steps=steps)(MEMORIZER, y)
    assert (refined.steps <= PRICE * blind.steps).all()


def test_steps_count_applications_but_for_each_runs_last() -> None:
    """The last application of a run of ADMM would only change what is not used."""
    calls = 0

    def f(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += len(x)
        return MEMORIZER(x)

    y = observe(STORED, fill_erased(mask("half", STORED.shape), STORED, "noise")).y
    steps = int(Refined()(f, y).steps.sum())
    assert 0.97 * steps < calls <= steps


def test_an_image_s_result_does_not_depend_on_what_stands_beside_it() -> None:
    y = observe(STORED, fill_erased(mask("half", STORED.shape), STORED, "noise")).y
    whole, part = Refined()(MEMORIZER, y), Refined()(MEMORIZER, y[3:7], chunk=3)
    assert torch.allclose(whole.estimate[3:7], part.estimate, atol=1e-5)
    assert torch.equal(whole.steps[3:7], part.steps)


def test_a_right_mask_gives_what_the_known_mask_would() -> None:
    seen = observe(STORED, mask("half", STORED.shape))
    refined = Refined()(MEMORIZER, seen.y)
    known = KnownMask(steps=400)(MEMORIZER, seen.y, refined.degradation)  # type: ignore[arg-type]
    assert torch.allclose(refined.estimate, known.estimate, atol=1e-4)


def answering(answer: Callable[[int, torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function whose answer depends on how often it was called."""
    calls = count(1)
    return lambda x: answer(next(calls), x)


def test_a_polish_that_diverges_is_not_taken() -> None:
    """f blows up only after the looks and the steps of one round: the polish meets it, blind does not."""
    y = observe(STORED, mask("half", STORED.shape)).y[:2]
    f = answering(lambda calls, x: x * torch.nan if 41 < calls <= 61 else torch.full_like(x, 0.5))
    found = Refined(steps=40, limit=1, restarts=())(f, y)
    assert torch.isfinite(found.estimate).all()
    assert set(found.stops) == {Stop.LIMIT}


def test_a_polish_that_leads_away_is_not_taken() -> None:
    """f answers well for one round and the looks before and after it, then with something else for the whole polish."""
    y = observe(STORED, mask("half", STORED.shape)).y[:2]
    f = answering(lambda calls, _: STORED.pixels[:2] if calls <= 41 else STORED.pixels[2:4])
    found = Refined(steps=40, limit=1, restarts=())(f, y)
    assert accurate(found.estimate, STORED[:2]) == 2


def test_a_model_that_returns_no_number_takes_nothing_down() -> None:
    y = observe(STORED, mask("half", STORED.shape)).y[:2]
    found = Refined()(lambda x: x * torch.nan, y)
    assert set(found.stops) == {Stop.DIVERGED}
    assert torch.isfinite(found.estimate).all()


def test_a_blur_is_refined_without_masks() -> None:
    seen = observe(STORED, Blur(torch.tensor([1.0])))
    found = Refined(start=Blur.first_guess)(MEMORIZER, seen.y)
    assert isinstance(found.degradation, Blur)
    assert accurate(found.estimate) == 12


@pytest.mark.parametrize("width", [1.55, 2.33])
def test_a_width_between_those_of_the_grid_is_found_and_costs_no_accuracy(width: float) -> None:
    seen = observe(STORED, Blur(torch.tensor([width])))
    blind, refined = (method(start=Blur.first_guess)(MEMORIZER, seen.y) for method in (Blind, Refined))
    errors = [(found.estimate - STORED.pixels).square().mean() for found in (blind, refined)]
    assert errors[1] <= errors[0]
    assert torch.allclose(refined.degradation.width, torch.tensor(width), atol=1e-2)  # type: ignore[union-attr]


def test_noise_is_not_pasted_where_that_is_said() -> None:
    seen = observe(STORED, mask("block", STORED.shape), noise_std=0.02)
    found = Refined(gamma=0.1, paste=False)(MEMORIZER, seen.y)
    assert Score.of(found.estimate, STORED.pixels).approximate.count >= 10
    assert not torch.equal(found.estimate, found.degradation.paste(found.estimate, seen.y))  # type: ignore[union-attr]


def test_noise_is_no_more_listened_to_at_the_end() -> None:
    """The noise on kept values keeps blind from an accurate answer; the model knows them without."""
    seen = observe(STORED, mask("block", STORED.shape), noise_std=0.02)
    blind, refined = Blind(gamma=0.1)(MEMORIZER, seen.y), Refined(gamma=0.1, paste=False)(MEMORIZER, seen.y)
    assert accurate(refined.estimate) > accurate(blind.estimate)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="At least one polishing step"):
        Refined(polish_steps=0)
    with pytest.raises(InputError, match="The limit is a number of rounds"):
        Refined(restart_rounds=0)
    for restarts in ((1,), half_kept):
        with pytest.raises(InputError, match="restarts is a tuple of functions"):
            Refined(restarts=restarts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="gamma must be positive"):
        Refined(gamma=0)


def test_an_audit_runs_it_by_name_and_speaks_of_it_first() -> None:
    found = audit(MEMORIZER, train=STORED, masks="half", methods="refined", gamma=0.5, start="half_kept")
    assert found.methods == ["refined"]
    assert found.main_method == "refined"
    assert found.rate("train", "half", "refined").value > 0.9


def test_each_restart_has_a_limit_of_its_own_for_each_image() -> None:
    """A restart takes as many rounds of an image as a run whose limit that is."""
    y, limits = torch.rand(3, 1, 4, 4), torch.tensor([2, 1, 3])

    def f(x: torch.Tensor) -> torch.Tensor:
        return 1 - x  # never settles

    with prepare(f, y, 2) as runtime:
        restart = Restart(2.0, 2, 3, all_erased, limits).recover(runtime, y, None, None, None)
    for i, limit in enumerate(limits.tolist()):
        alone = Blind(gamma=2.0, steps=2, limit=limit, start=all_erased)(f, y[i : i + 1])
        assert (restart.rounds[i], restart.stops[i]) == (alone.rounds[0], alone.stops[0])
        assert torch.equal(restart.estimate[i], alone.estimate[0])
