from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect import Degradation


@dataclass(frozen=True, eq=False)
class Fade(Degradation):
    """Another family, written with the fields alone: each image has its own factor."""

    factor: Tensor

    def apply(self, x: Tensor) -> Tensor:
        return self.factor.view(-1, 1, 1, 1) * x


def test_a_new_family_needs_only_its_fields() -> None:
    fade = Fade(torch.tensor([0.5, 1.0, 0.5]))
    first, second, third = fade.fingerprint().tolist()
    assert first == third != second
    assert len(fade[[0, 2]]) == 2
    assert Fade(torch.tensor([0.5])).expand(torch.zeros(4, 1, 2, 2)).factor.tolist() == [0.5] * 4


@pytest.mark.parametrize(
    "call",
    [
        lambda d, x: d.apply(x),
        lambda d, x: d.prox(x, x, 1.0),
        lambda d, x: d.refit(x, x),
        lambda d, x: d.first_guess(x),
        lambda d, x: d.parse("1", (1, 2, 2)),
    ],
)
def test_a_family_must_say_what_it_does(call: object) -> None:
    with pytest.raises(NotImplementedError):
        call(Degradation(), torch.zeros(1, 1, 2, 2))  # type: ignore[operator]


@dataclass(frozen=True, eq=False)
class Two(Degradation):
    """Two fields of one shape."""

    first: Tensor
    second: Tensor


def test_fields_that_change_places_change_the_fingerprint() -> None:
    a, b = torch.tensor([[1.0]]), torch.tensor([[2.0]])
    assert Two(a, b).fingerprint() != Two(b, a).fingerprint()
