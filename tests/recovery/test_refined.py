"""Refined: blind, then a long run with the tidied mask; never clearly worse than blind, never told the truth."""

from __future__ import annotations

import pytest
import torch

from recollect import Blind, Images, InputError, KnownMask, Score, audit, mask, observe
from recollect.degradation import Erasure
from recollect.recovery import Refined, Stop
from tests.planted import Memorizer


@pytest.fixture(scope="module")
def stored() -> Images:
    return Images(torch.rand(12, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 0.9 + 0.05)


def test_a_mask_is_tidied_by_the_majority_of_channels() -> None:
    keep = torch.tensor([True, True, False]).view(1, 3, 1, 1)
    assert Erasure(keep).tidied().keep.flatten().tolist() == [True, True, True]
    assert Erasure(~keep).tidied().keep.flatten().tolist() == [False, False, False]


@pytest.mark.parametrize("name", ["block", "half", "dust"])
def test_it_recovers_what_blind_does_and_pastes_the_kept_values(stored: Images, name: str) -> None:
    seen = observe(stored, mask(name, stored.shape))
    f = Memorizer(stored.pixels)
    blind, refined = Blind()(f, seen.y), Refined()(f, seen.y)
    truth = seen.truth.expand(seen.y).keep
    assert (
        Score.of(refined.estimate, stored.pixels).accurate.count
        >= Score.of(blind.estimate, stored.pixels).accurate.count
    )
    told = (refined.degradation.keep == truth).flatten(1).all(1)  # type: ignore[union-attr]
    assert told.any()
    assert torch.equal(refined.estimate[told] * truth[told], seen.y[told])


def test_its_steps_are_those_of_blind_and_the_refinement(stored: Images) -> None:
    seen = observe(stored, mask("half", stored.shape))
    f = Memorizer(stored.pixels)
    assert (Refined(refine_steps=7)(f, seen.y).steps - Blind()(f, seen.y).steps).unique().tolist() == [7]


def test_a_refinement_that_diverges_is_not_taken(stored: Images) -> None:
    """f blows up only after the steps of one round: the longer run meets it, blind does not."""
    y = observe(stored, mask("half", stored.shape)).y[:2]
    calls = 0

    def f(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return x * torch.nan if calls > 50 else torch.full_like(x, 0.5)

    found = Refined(steps=40, limit=1, refine_steps=100)(f, y)
    assert torch.isfinite(found.estimate).all()
    assert set(found.stops) == {Stop.LIMIT}


def test_a_right_mask_gives_what_the_known_mask_would(stored: Images) -> None:
    seen = observe(stored, mask("half", stored.shape))
    f = Memorizer(stored.pixels)
    refined = Refined(refine_steps=100)(f, seen.y)
    known = KnownMask(steps=100)(f, seen.y, refined.degradation)  # type: ignore[arg-type]
    assert torch.allclose(refined.estimate, known.estimate, atol=1e-5)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="At least one refining step"):
        Refined(refine_steps=0)
    with pytest.raises(InputError, match="gamma must be positive"):
        Refined(gamma=0)


def test_an_audit_runs_it_by_name_and_speaks_of_it_first(stored: Images) -> None:
    found = audit(Memorizer(stored.pixels), train=stored, masks="half", methods="refined", gamma=0.5, start="random")
    assert found.methods == ["refined"]
    assert found.main_method == "refined"
    assert found.rate("train", "half", "refined").value > 0.9
