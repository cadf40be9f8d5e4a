import math

import pytest
import torch

from recollect import InputError
from recollect.diffusion import PriorRecipe
from recollect.diffusion.learning import Learner
from recollect.diffusion.network import make_network, make_scheduler
from recollect.diffusion.train import eight_bit
from tests.diffusion.making import TINY, pictures


def learner(recipe: PriorRecipe = TINY) -> Learner:
    alphas = make_scheduler(recipe.schedule).alphas_cumprod
    return Learner(make_network(3, 8, recipe.widths), alphas, eight_bit(pictures()), recipe)


def test_the_loss_falls() -> None:
    one = learner(PriorRecipe(widths=(16, 16), batch=16, warm_up=5, rate=3e-3))
    losses = [float(one.step(0.0)) for _ in range(40)]
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


def test_the_rate_rises_over_the_first_steps_and_falls_with_the_time() -> None:
    one = learner(PriorRecipe(widths=(16, 16), rate=1.0, warm_up=4))
    assert one.rate(0.0) == 0.25
    one.steps = 10
    assert one.rate(0.0) == 1.0
    assert one.rate(0.5) == pytest.approx(0.5)
    assert one.rate(1.0) == one.rate(7.0) == pytest.approx(0.0)


def test_every_batch_covers_all_time_steps_and_pixels_keep_their_range() -> None:
    x, noise, t = learner(PriorRecipe(widths=(16, 16), batch=100))._batch()
    assert (x >= -1).all()
    assert (x <= 1).all()
    assert torch.equal(t // 10, torch.arange(100))
    assert abs(float(noise.std()) - 1) < 0.05


def test_the_average_follows_the_weights() -> None:
    one = learner()
    one.step(0.0)
    moved, averaged = next(one.network.parameters()), next(one.averaged.parameters())
    assert not torch.equal(moved, averaged)
    with torch.no_grad():
        moved.fill_(1.0)
    for _ in range(200):
        one.steps += 1
        one._follow()
    assert torch.allclose(averaged, moved, atol=1e-2)


def test_going_on_from_a_state_is_the_same_as_never_having_stopped() -> None:
    through, stopped = learner(), learner()
    for part in (0.0, 0.2):
        through.step(part), stopped.step(part)
    resumed = learner()
    resumed.restore(stopped.state())
    assert float(through.step(0.4)) == float(resumed.step(0.4))
    for a, b in zip(through.averaged.parameters(), resumed.averaged.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_first_weights_are_the_seeds_and_leave_the_callers_draws_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (make_network(3, 8, (16, 16), seed=s).state_dict() for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not all(torch.equal(first[k], other[k]) for k in first)


def test_the_bundled_size_fits_into_twelve_megabytes() -> None:
    network = make_network(3, 32)
    assert 2 * sum(p.numel() for p in network.parameters()) <= 12e6


def test_pixels_look_at_each_other_where_there_are_few_and_below_full_size() -> None:
    blocks = {side: make_network(3, side, (16,) * 4).config.down_block_types for side in (16, 32, 64)}
    attends = {side: [kind.startswith("Attn") for kind in kinds] for side, kinds in blocks.items()}
    assert attends == {16: [False, True, True, True], 32: [False, True, True, True], 64: [False, False, True, True]}
    up = make_network(3, 64, (16,) * 4).config.up_block_types
    assert [kind.startswith("Attn") for kind in up] == [True, True, False, False]


def test_larger_images_are_halved_once_more_and_batches_have_as_many_pixels() -> None:
    small, large = PriorRecipe.for_size(32, "cuda"), PriorRecipe.for_size(64, "cuda")
    assert small == PriorRecipe.for_size(8, "cuda") == PriorRecipe()
    assert len(large.widths) == len(small.widths) + 1
    assert large.batch * 64**2 == small.batch * 32**2
    asked = PriorRecipe.for_size(64, "cuda", batch=7, seed=1)
    assert (asked.batch, asked.seed, asked.widths) == (7, 1, large.widths)
    assert make_network(3, 36, PriorRecipe.for_size(36, "cuda").widths).config.sample_size == 36
    for side in (32, 64):
        assert PriorRecipe.for_size(side, "cpu").batch == 16
    assert PriorRecipe.for_size(64, "cpu").widths == large.widths


def test_the_rate_has_risen_after_a_twentieth_of_the_time_however_few_the_steps() -> None:
    one = learner(PriorRecipe(widths=(16, 16), rate=1.0, warm_up=500))
    assert one.rate(0.0) == pytest.approx(1 / 500)
    assert one.rate(0.025) == pytest.approx(0.5, rel=0.01)
    assert one.rate(0.05) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(("steps", "weight"), [(20, 0.1), (2_000, 0.01), (100_000, 0.001)])
def test_the_average_reaches_back_a_twentieth_of_the_steps(steps: int, weight: float) -> None:
    one = learner()
    one.steps = steps
    with torch.no_grad():
        for mine, other in zip(one.averaged.parameters(), one.network.parameters(), strict=True):
            mine.zero_(), other.fill_(1)
    one._follow()
    assert float(next(one.averaged.parameters()).max()) == pytest.approx(weight, rel=1e-4)


def test_schedules_go_from_nearly_clean_to_nearly_noise() -> None:
    for name in ("cosine", "linear"):
        alphas = make_scheduler(name).alphas_cumprod
        assert alphas[0] > 0.999
        assert alphas[-1] < 1e-4
        assert (alphas.diff() < 0).all()


@pytest.mark.parametrize("widths", [(16,), (16, 20), ()])
def test_widths_that_do_not_work_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="two or more multiples of 16"):
        make_network(3, 8, widths)


def test_settings_that_do_not_work_are_refused() -> None:
    with pytest.raises(InputError, match="There is no schedule 'square'; choose from cosine, linear"):
        PriorRecipe(schedule="square")
    with pytest.raises(InputError, match="9x9; with 2 widths their side must be divisible by 2"):
        make_network(3, 9, (16, 16))
    for wrong in ({"rate": 0.0}, {"rate": math.nan}, {"batch": 0}, {"average": 1.0}):
        with pytest.raises(InputError, match="recipe needs"):
            PriorRecipe(**wrong)  # type: ignore[arg-type]
