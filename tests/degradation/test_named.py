import pytest
import torch

from recollect import Erasure, InputError, mask
from recollect.degradation import Blur, Coarse, degradation

SHAPE = (3, 8, 8)


def test_every_spelling() -> None:
    assert degradation("blur:1.5", SHAPE).width.tolist() == [1.5]  # type: ignore[attr-defined]
    assert degradation("coarse:4", SHAPE).factor.tolist() == [4]  # type: ignore[attr-defined]
    assert torch.equal(degradation("half", SHAPE).keep, mask("half", SHAPE).keep)  # type: ignore[attr-defined]
    own = Blur(torch.tensor([2.0]))
    assert degradation(own, SHAPE) is own
    assert type(degradation(mask("half", SHAPE), SHAPE)) is Erasure


def test_they_say_what_they_do() -> None:
    assert str(degradation("half", SHAPE)) == "50.0% erased"
    assert str(Blur(torch.tensor([1.5]))) == "blurred by a Gaussian of 1.5 pixels"
    assert str(Coarse(torch.tensor([2]))) == "means of 2x2 pixels"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("blur:wide", "'wide' is not a number; write for example blur:1.5"),
        ("coarse:1.5", "'1.5' is not a whole number; write for example coarse:4"),
        ("blur:-1", "zero or more"),
        ("blurred", "also blur:WIDTH and coarse:FACTOR"),
    ],
)
def test_others_are_refused(what: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        degradation(what, SHAPE)
