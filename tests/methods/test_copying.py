"""Models that nearly copy their input are judged by where they go in the end."""

import pytest
import torch

from recollect.engine import prepare
from recollect.methods.copying import first_steps, foreseen, reach_of_iteration

END = torch.rand(5, 3, 4, 4, generator=torch.Generator().manual_seed(1))
Y = torch.rand(5, 3, 4, 4, generator=torch.Generator().manual_seed(2))


def creeping(x: torch.Tensor, rate: float = 0.95) -> torch.Tensor:
    """Go a twentieth of the distance to the same images."""
    return rate * x + (1 - rate) * END[: len(x)]


def test_first_steps_are_taken_in_batches_and_only_where_they_are_finite() -> None:
    sizes: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        sizes.append(len(x))
        return torch.where(x[:, :1, :1, :1] > 0.5, torch.nan, x / 2)

    y = Y.clone()
    y[:, 0, 0, 0] = torch.tensor([0.1, 0.9, 0.1, 0.1, 0.9])
    with prepare(f, y, 2) as runtime:
        first = first_steps(runtime, y)
    assert sizes[-3:] == [2, 2, 1]
    assert torch.equal(first[[0, 2, 3]], y[[0, 2, 3]] / 2)
    assert torch.equal(first[[1, 4]], y[[1, 4]])


def test_the_reach_counts_first_steps_where_a_model_creeps() -> None:
    reach = reach_of_iteration(Y, creeping(Y), END)
    assert torch.allclose(reach, torch.full((5,), 20.0), rtol=1e-3)


@pytest.mark.parametrize("first", [END, (Y + END) / 2, Y], ids=["restored at once", "in long steps", "a fixed point"])
def test_other_models_are_believed_at_once(first: torch.Tensor) -> None:
    end = Y if first is Y else END
    assert torch.equal(reach_of_iteration(Y, first, end), torch.ones(5))


@pytest.mark.parametrize(("reach", "share"), [(20.0, 1.0), (100.0, 1.0), (5.0, 0.25)])
def test_the_end_is_foreseen_but_no_farther_than_the_reach(reach: float, share: float) -> None:
    with prepare(creeping, Y, None) as runtime:
        end = foreseen(runtime, Y, creeping(Y), torch.full((5,), reach))
    assert torch.allclose(end, Y + share * (END - Y), atol=1e-3)


def test_rounding_at_rest_is_not_magnified() -> None:
    noise = 1e-7 * torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(3))
    with prepare(lambda x: x + noise[: len(x)], Y, None) as runtime:
        assert torch.equal(foreseen(runtime, Y, Y + noise, torch.full((5,), 100.0)), Y + (Y + noise - Y))


def test_steps_that_do_not_shrink_lead_far_away() -> None:
    """A model that pulls more the nearer an image comes is not at rest where it pulls little."""
    step = torch.full_like(Y, 1e-4)
    with prepare(lambda x: x + 1e-4, Y, None) as runtime:
        end = foreseen(runtime, Y, Y + step, torch.full((5,), 5.0))
    assert ((end - Y).abs().flatten(1).mean(1) > 0.05).all()
