"""Refined: at least what blind finds, whatever erased pixels hold; never told the truth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch

from recollect import Blind, Images, InputError, Iterate, KnownMask, Score, audit, load, mask, observe
from recollect.degradation import FILLS, PAPER_MASKS, Blur, Erasure, all_erased, fill_erased, half_kept
from recollect.engine import shared_runtimes
from recollect.methods import Refined
from recollect.methods.refined import BUDGET_FACTOR, Answer
from recollect.recovery import Recovery, Stop
from tests.diffusion.making import posterior_mean
from tests.planted import Memorizer

STORED = load("photos?count=12&size=16")
OTHERS = load("photos?count=8&size=16&part=control")
MEMORIZER = Memorizer(STORED.pixels)
SMALL = load("photos?count=12&size=8")

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


@pytest.mark.parametrize("name", list(PAPER_MASKS))
def test_it_recovers_what_blind_does_and_pastes_the_kept_values(name: str) -> None:
    seen = observe(STORED, mask(name, STORED.shape))
    blind, refined = Blind()(MEMORIZER, seen.y), Refined()(MEMORIZER, seen.y)
    assert accurate(refined.estimate) >= accurate(blind.estimate)
    kept = refined.degradation.keep  # type: ignore[union-attr]
    assert torch.equal(refined.estimate[kept], seen.y[kept])


def assert_equal(one: Recovery, other: Recovery) -> None:
    assert torch.equal(one.estimate, other.estimate)
    assert torch.equal(one.steps, other.steps)
    assert one.stops == other.stops


class Counting(Memorizer):
    """Counts how often it is called."""

    calls = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().__call__(x)


def test_an_audit_computes_its_blind_part_once() -> None:
    order: tuple[Blind | Refined, ...] = Blind(limit=9), Refined(limit=9)  # as an audit has them
    y = observe(STORED, mask("half", STORED.shape)).y
    alone = [method(Counting(STORED.pixels), y) for method in order]
    separate, shared = Counting(STORED.pixels), Counting(STORED.pixels)
    for method in order:
        method(separate, y)
    with shared_runtimes():
        together = [method(shared, y.clone()) for method in order]
    for one, other in zip(alone, together, strict=True):
        assert_equal(one, other)
    assert shared.calls < 0.7 * separate.calls


@pytest.mark.parametrize(
    "other",
    [Refined(limit=8), Refined(gamma=0.4, limit=9), Refined(limit=9, start=all_erased), Refined(limit=9, steps=39)],
)
def test_a_recovery_with_other_settings_or_images_is_made_anew(other: Refined) -> None:
    y, another = (observe(STORED, mask(name, STORED.shape)).y for name in ("half", "block"))
    with shared_runtimes():
        Blind(limit=9)(MEMORIZER, y)
        with_other_settings = other(MEMORIZER, y)
        Blind(limit=9)(MEMORIZER, y)
        of_other_images = Refined(limit=9)(MEMORIZER, another)
    assert_equal(with_other_settings, other(MEMORIZER, y))
    assert_equal(of_other_images, Refined(limit=9)(MEMORIZER, another))


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("name", ["block", "scatter", "frame"])
def test_it_recovers_whatever_erased_pixels_hold(name: str, kind: str) -> None:
    seen = observe(STORED, fill_erased(mask(name, STORED.shape), STORED, kind))
    found = Refined()(MEMORIZER, seen.y)
    assert accurate(found.estimate) >= 10
    for weaker in (Blind(), Iterate()):
        assert accurate(found.estimate) >= accurate(weaker(MEMORIZER, seen.y).estimate)


@pytest.mark.parametrize("kind", FILLS)
def test_what_is_not_stored_is_not_recovered(kind: str) -> None:
    seen = observe(OTHERS, fill_erased(mask("half", OTHERS.shape), OTHERS, kind))
    assert Score.of(Refined()(MEMORIZER, seen.y).estimate, OTHERS.pixels).approximate.count == 0


def test_an_image_that_is_explained_is_not_searched_for() -> None:
    """Black pixels and kept ones are all there is: blind's answer needs no other start."""
    y = observe(STORED, mask("block", STORED.shape)).y
    alone, searched = Refined(restarts=())(MEMORIZER, y), Refined()(MEMORIZER, y)
    same = [torch.equal(a, b) for a, b in zip(alone.estimate, searched.estimate, strict=True)]
    assert sum(same) >= 10
    assert torch.equal(alone.steps[torch.tensor(same)], searched.steps[torch.tensor(same)])


def test_a_fixed_point_that_explains_enough_ends_the_search() -> None:
    """Noise hides which pixels are kept, but no image that the model lacks explains half of y."""
    damaged = [fill_erased(mask("half", images.shape), images, "noise") for images in (STORED, OTHERS)]
    stored, other = (observe(images, truth).y for images, truth in zip((STORED, OTHERS), damaged, strict=True))
    spent = [(Refined()(MEMORIZER, y).steps - Blind()(MEMORIZER, y).steps).float().mean() for y in (stored, other)]
    assert spent[0] < 0.6 * spent[1]


@pytest.mark.parametrize("gamma", [2.0, 20.0])
def test_an_image_that_is_like_another_one_is_not_mistaken_for_it(gamma: float) -> None:
    """One of these photographs explains enough of the damaged copy of another one to end the search for it."""
    images = load("photos?count=16&size=8&seed=100")
    f, y = Memorizer(images.pixels, sharpness=3), observe(images, mask("stripes", images.shape)).y
    found, iterated = (method(f, y).estimate for method in (Refined(gamma, limit=20), Iterate()))
    recovered, by_iterate = (Score.of(x, images.pixels).mse < 1e-7 for x in (found, iterated))
    assert by_iterate.sum() > 0
    assert not (by_iterate & ~recovered).any()


def test_a_fixed_point_that_is_a_blend_is_not_taken_for_precise() -> None:
    """A diffusion model at a high noise level: iterated, it drifts from training images to blends of them."""
    images = load("photos?count=24&size=8")
    denoise, y = posterior_mean(images.pixels), observe(images, mask("dust", images.shape)).y

    def f(x: torch.Tensor) -> torch.Tensor:
        return denoise(x, torch.tensor(0.7))

    blind, refined = (method(f, y).estimate for method in (Blind(limit=6), Refined(limit=6)))
    recovered = [Score.of(x, images.pixels).approximate.count for x in (blind, refined)]
    assert recovered[0] >= 20
    assert recovered[1] >= recovered[0]


def pulled_near_by(x: torch.Tensor) -> torch.Tensor:
    """Pull what is near to a stored image, and copy everything else."""
    stored = SMALL.pixels.flatten(1)
    nearest = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").min(1)
    pull = 0.9 * torch.exp(-0.5 * nearest.values.square())[:, None]
    return torch.lerp(x.flatten(1), stored[nearest.indices], pull).view_as(x)


def creeping(x: torch.Tensor) -> torch.Tensor:
    return 0.98 * x + 0.02 * Memorizer(SMALL.pixels, sharpness=20.0)(x)


@pytest.mark.parametrize("kind", ["zero", "noise"])
@pytest.mark.parametrize("f", [creeping, pulled_near_by])
def test_a_model_that_nearly_copies_is_not_believed_that_y_explains_itself(
    f: Callable[[torch.Tensor], torch.Tensor], kind: str
) -> None:
    """Every image is nearly a fixed point, y too; iteration still ends on stored images."""
    y = observe(SMALL, fill_erased(mask("half", SMALL.shape), SMALL, kind)).y
    blind, iterated, refined = (method(f, y) for method in (Blind(limit=10), Iterate(), Refined(limit=10)))
    assert accurate(refined.estimate, SMALL) >= accurate(iterated.estimate, SMALL) > 0
    assert (refined.steps <= BUDGET_FACTOR * blind.steps + iterated.steps).all()


def near_and_then_creeping(x: torch.Tensor) -> torch.Tensor:
    """Jump near the nearest stored image, then approach it by 3% a step."""
    stored = SMALL.pixels.flatten(1)
    nearest = torch.cdist(x.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
    away = x.flatten(1) - stored[nearest]
    distance = away.square().mean(1, keepdim=True).sqrt().clamp(min=1e-20)
    return (stored[nearest] + 0.97 * away * (0.1 / distance).clamp(max=1)).view_as(x)


@pytest.mark.parametrize("kind", ["zero", "noise"])
def test_a_model_that_creeps_near_its_images_is_followed_to_the_end(kind: str) -> None:
    """Steps that are as good as none add up to 33 times their length."""
    y = observe(SMALL, fill_erased(mask("frame", SMALL.shape), SMALL, kind)).y
    iterated, refined = (method(near_and_then_creeping, y).estimate for method in (Iterate(), Refined(limit=10)))
    assert accurate(refined, SMALL) >= accurate(iterated, SMALL) > 0


@pytest.mark.parametrize("name", ["dust", "half"])
def test_an_area_that_all_images_share_does_not_speak_for_one_of_them(name: str) -> None:
    """A wrong image explains the grey band as exactly as the right one does."""
    pixels = SMALL.pixels.clone()
    pixels[..., 2:6] = 0.5
    f, y = Memorizer(pixels, sharpness=2), observe(Images(pixels), mask(name, SMALL.shape)).y
    answers = [method(f, y).estimate for method in (Blind(), Iterate(), Refined())]
    blind, iterated, refined = (Score.of(x, pixels).approximate.count for x in answers)
    assert refined >= max(blind, iterated) > 0


def test_errors_of_the_model_on_kept_pixels_do_not_count() -> None:
    """Black gives the mask away: all other pixels are known, although the model reproduces none of them exactly."""
    off = 4e-4 * torch.randn(STORED.pixels.shape[1:], generator=torch.Generator().manual_seed(2)).sign()
    y = observe(STORED, mask("half", STORED.shape)).y
    assert accurate((STORED.pixels + off).clamp(0, 1)) == 0
    assert accurate(Refined()(lambda x: MEMORIZER(x) + off, y).estimate) >= 11


def test_exactly_constant_areas_cost_no_accuracy() -> None:
    """Erased pixels that hold nearly the colour of a constant area are not pasted over an exact answer."""
    flat = STORED.pixels.clone()
    flat[..., 8:, :] = 0.5
    f = Memorizer(flat)
    y = flat.clone()
    y[..., 10:, :] = 0.5 + 0.02 * torch.rand(12, 3, 6, 16, generator=torch.Generator().manual_seed(1))
    assert accurate(Iterate()(f, y).estimate, Images(flat)) == 12
    assert accurate(Refined()(f, y).estimate, Images(flat)) == 12


def test_the_truth_is_never_read() -> None:
    y = observe(STORED, fill_erased(mask("half", STORED.shape), STORED, "noise")).y
    wrong = mask("block", STORED.shape)
    assert torch.equal(Refined()(MEMORIZER, y, wrong).estimate, Refined()(MEMORIZER, y).estimate)


@pytest.mark.parametrize("kind", FILLS)
def test_masks_that_cycle_for_blind_converge(kind: str) -> None:
    """A blunt memorizer, on whose blends blind's masks oscillate."""
    f = Memorizer(STORED.pixels, sharpness=8.0)
    y = observe(STORED, fill_erased(mask("scatter", STORED.shape), STORED, kind)).y
    blind, refined = Blind(gamma=0.1)(f, y), Refined(gamma=0.1)(f, y)
    assert refined.stops.count(Stop.CONVERGED) >= 11
    assert accurate(refined.estimate) >= accurate(blind.estimate)


def test_an_answer_that_y_keeps_moving_comes_to_rest_by_the_model_alone() -> None:
    """The polish with y leaves one of these images moving."""
    f = Memorizer(SMALL.pixels, sharpness=8.0)
    y = observe(SMALL, fill_erased(mask("half", SMALL.shape), SMALL, "images")).y
    assert Refined(gamma=0.1, limit=20)(f, y).stops == [Stop.CONVERGED] * 12


def test_an_answer_at_rest_wins_where_misfits_are_nearly_the_same() -> None:
    def answer(stop: Stop, *misfits: float) -> Answer:
        images, each = torch.full((4, 1, 2, 2), float(stop)), torch.ones(4, dtype=torch.int64)
        recovery = Recovery(images, half_kept(images), each, each, each * stop)
        no = torch.zeros(4, dtype=torch.bool)
        return Answer(recovery, torch.tensor(misfits), explained=no, certain=no, reach=torch.ones(4))

    moving, rested = answer(Stop.DONE, 0, 0, 0, 0), answer(Stop.CONVERGED, -0.2, -0.05, 0.05, 0.2)
    every = torch.arange(4)
    for best in (moving.with_better(every, rested, at_rest=0.1), rested.with_better(every, moving, at_rest=0.1)):
        assert best.recovery.stops == [Stop.CONVERGED] * 3 + [Stop.DONE]
    assert moving.with_better(every, rested).recovery.stops == [Stop.CONVERGED] * 2 + [Stop.DONE] * 2


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("steps", [1, 2, 40])
def test_no_image_costs_more_than_three_times_what_blind_takes_and_iterate_once(kind: str, steps: int) -> None:
    """Stored images and others, small ones since there are many cases."""
    memorizer = Memorizer(SMALL.pixels[:6])
    y = observe(SMALL, fill_erased(mask("half", SMALL.shape), SMALL, kind)).y
    blind, refined = (method(steps=steps, limit=20)(memorizer, y) for method in (Blind, Refined))
    assert (refined.steps <= BUDGET_FACTOR * blind.steps + Iterate()(memorizer, y).steps).all()


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
    known = KnownMask(steps=400)(MEMORIZER, seen.y, refined.degradation)
    assert torch.allclose(refined.estimate, known.estimate, atol=1e-4)


def answering(answer: Callable[[int, torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function whose answer depends on how often it was called."""
    calls = count(1)
    return lambda x: answer(next(calls), x)


def test_a_polish_that_diverges_is_not_taken() -> None:
    """f blows up only after the steps of one round and the check of its answer: blind does not meet it."""
    y = observe(STORED, mask("half", STORED.shape)).y[:2]
    f = answering(lambda calls, x: x * torch.nan if calls > 41 else torch.full_like(x, 0.5))
    found = Refined(steps=40, limit=1, restarts=())(f, y)
    assert torch.isfinite(found.estimate).all()
    assert set(found.stops) == {Stop.LIMIT}


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


@pytest.mark.parametrize("kind", ["zero", "noise"])
def test_with_noise_it_recovers_at_least_what_blind_and_iterate_do(kind: str) -> None:
    seen = observe(STORED, fill_erased(mask("scatter", STORED.shape), STORED, kind), noise_std=0.02)
    refined = Refined(gamma=0.1, paste=False)(MEMORIZER, seen.y)
    for weaker in (Blind(gamma=0.1), Iterate()):
        assert accurate(refined.estimate) >= accurate(weaker(MEMORIZER, seen.y).estimate)
    assert accurate(refined.estimate) >= 10


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="At least one polishing step"):
        Refined(polish_steps=0)
    with pytest.raises(InputError, match="The limit is a number of rounds"):
        Refined(limit=0)
    with pytest.raises(InputError, match="At least one step of a restart"):
        Refined(restart_steps=0)
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
