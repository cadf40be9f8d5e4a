import pytest
import torch

from recollect import Erasure, InputError, mask
from recollect.degradation import DEGRADATIONS, Blur, Coarse, degradation

SHAPE = (3, 8, 8)


def test_a_name_with_its_value() -> None:
    blur, coarse = degradation("blur:1.5", SHAPE), degradation("coarse:4", SHAPE)
    assert isinstance(blur, Blur)
    assert blur.width.tolist() == [1.5]
    assert isinstance(coarse, Coarse)
    assert coarse.factor.tolist() == [4]


def test_masks_and_objects_are_degradations_too() -> None:
    half = degradation("half", SHAPE)
    assert isinstance(half, Erasure)
    assert torch.equal(half.keep, mask("half", SHAPE).keep)
    own = Blur(torch.tensor([2.0]))
    assert degradation(own, SHAPE) is own
    assert type(degradation(mask("half", SHAPE), SHAPE)) is Erasure


def test_every_degradation_says_what_it_is() -> None:
    assert list(DEGRADATIONS)[:2] == ["blur", "coarse"]
    for name, family in DEGRADATIONS.items():
        assert family.summary
        assert type(degradation(family.example, SHAPE)) is family
        assert family.example.startswith(f"{name}:")


def test_an_object_says_what_it_does() -> None:
    assert str(degradation("half", SHAPE)) == "50.0% erased"
    assert str(Blur(torch.tensor([1.5]))) == "blurred by a Gaussian of 1.5 pixels"
    assert str(Coarse(torch.tensor([2]))) == "means of 2x2 pixels"


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("blur:wide", "'wide' is not a number; write for example blur:1.5"),
        ("blur", "'' is not a number; write for example blur:1.5"),
        ("coarse:1.5", "'1.5' is not a whole number; write for example coarse:4"),
        ("blur:-1", "zero or more"),
        (
            "blurred",
            r"There is no mask 'blurred'. Known: block, .*, columns:NAME\+NUMBER, blur:1.5, coarse:4, .*or the path",
        ),
    ],
)
def test_others_are_refused(what: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        degradation(what, SHAPE)
