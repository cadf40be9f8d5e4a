"""What every method inherits."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from recollect import Blind, InputError, Iterate, KnownMask, mask
from recollect.degradation import Blur
from recollect.methods import Biharmonic
from recollect.methods.base import Method

Y = torch.rand(2, 3, 4, 4)


@dataclass(frozen=True)
class Unfinished(Method):
    """Has no step."""

    name = "unfinished"
    summary = "no step"


def same(x: Tensor) -> Tensor:
    return x


def test_an_audits_settings_reach_those_methods_that_have_them() -> None:
    settings = {"gamma": 0.3, "paste": False}
    assert KnownMask.for_audit(**settings) == KnownMask(gamma=0.3, paste=False)
    assert Blind.for_audit(**settings) == Blind(gamma=0.3)
    assert Iterate.for_audit(**settings) == Iterate()
    assert KnownMask.takes("paste")
    assert not Blind.takes("paste")


def test_the_truth_is_needed_by_methods_that_know_it_and_read_by_no_other() -> None:
    with pytest.raises(InputError, match="known needs the true degradation, such as an Erasure, not a NoneType"):
        KnownMask()(same, Y)
    assert torch.equal(Iterate(limit=1)(same, Y, mask("block", (3, 4, 4))).estimate, Y)


def test_a_method_for_erased_pixels_refuses_a_blur() -> None:
    with pytest.raises(InputError, match="biharmonic restores erased pixels: the truth is an Erasure, not a Blur"):
        Biharmonic()(None, Y, Blur(torch.tensor([1.0])))


def test_a_method_without_a_step_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Unfinished()(same, Y)
