from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect import Blind, InputError
from recollect.auditing import AuditRequest
from recollect.auditing.request import default_methods
from recollect.degradation import PAPER_MASKS
from recollect.methods import DDNM, METHODS, Iterate, KnownMask, Refined, ZeroRule


def request(**settings: Any) -> AuditRequest:
    return AuditRequest(model=abs, train=[], **settings)


def test_it_is_checked_when_made_and_cannot_be_changed() -> None:
    made = request(masks="half", noise_std=0.1)
    assert (made.masks, made.fills, made.paste) == ("half", ["zero"], False)
    assert request().paste
    with pytest.raises(FrozenInstanceError):
        made.seed = 1  # type: ignore[misc]


# --- masks and fills


def test_masks_by_name_list_dict_and_array() -> None:
    array = np.ones((8, 8), bool)
    for masks, names in [
        ("all", list(PAPER_MASKS)),
        ("half, random:0.3", ["half", "random:0.3"]),
        ("all,random:0.3", [*PAPER_MASKS, "random:0.3"]),
        (["dust", array], ["dust", "mask-2"]),
        (array, ["mask-1"]),
        ({"mine": array}, ["mine"]),
        (Path("mine.png"), ["mine.png"]),
    ]:
        assert list(request(masks=masks).named_masks) == names
    empty: list[Any] = [[], {}]
    for nothing in empty:
        with pytest.raises(InputError, match="At least one mask"):
            request(masks=nothing)


@pytest.mark.parametrize("fill", ["black", "zero,black", "", []])
def test_an_unknown_fill_is_refused(fill: Any) -> None:
    with pytest.raises(InputError, match=r"no fill .*; choose from zero, constant, noise, images"):
        request(fill=fill)


def test_fills_are_read_once_each() -> None:
    assert request(fill="noise, zero,noise").fills == ["noise", "zero"]


# --- methods


def test_methods_that_say_so_run_by_default() -> None:
    assert list(request().named_methods) == default_methods() == ["blind", "refined", "iterate", "known"]
    assert all(METHODS[name].by_default for name in default_methods())


def test_a_name_stands_for_a_class_and_an_object_for_itself() -> None:
    mine = Blind(gamma=0.7, limit=3)
    assert request(methods="blind, known").named_methods == {"blind": Blind, "known": KnownMask}
    assert request(methods=[mine, "iterate"]).named_methods == {"blind": mine, "iterate": Iterate}
    assert request(methods=mine).named_methods == {"blind": mine}
    named = {"low": Blind(gamma=0.1), "other": "refined"}
    assert request(methods=named).named_methods == {"low": Blind(gamma=0.1), "other": Refined}


@dataclass(frozen=True)
class Nameless:
    knows_truth = False

    def __call__(self, *_: Any) -> None: ...


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("blnd", "no method 'blnd'; choose from blind, refined, iterate, known, known-400, zero-rule"),
        ("", "At least one method"),
        ([], "At least one method"),
        ("blind,blind", "two methods called 'blind'"),
        ([Blind(), Blind(gamma=0.1)], "two methods called 'blind'"),
        ([Blind], r"write Blind\(\) in place of Blind"),
        ([3], "got a int"),
        ([Nameless()], "with a name and knows_truth; got a Nameless"),
    ],
)
def test_methods_that_cannot_be_read_are_refused(methods: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        request(methods=methods)


def test_a_prior_needs_a_method_that_takes_one() -> None:
    assert request(methods="blind,ddnm", prior="folder").named_methods["ddnm"] is DDNM
    for methods in ("blind", [ZeroRule()]):
        with pytest.raises(InputError, match="A prior is for the method ddnm; add ddnm to the methods"):
            request(methods=methods, prior="folder")


# --- numbers


@pytest.mark.parametrize("gamma", ["autp", True, 0, -1.0, float("nan"), float("inf")])
def test_a_gamma_that_is_none_is_refused(gamma: Any) -> None:
    with pytest.raises(InputError, match="gamma is a"):
        request(gamma=gamma)


def test_numbers_and_auto_are_taken() -> None:
    for gamma in (None, "auto", 0.5, 1, np.float32(0.1)):
        assert request(gamma=gamma).gamma == gamma


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"start": "zeros"}, "no start mask 'zeros'; choose half_kept, all_erased or auto"),
        ({"noise_std": -0.1}, "zero or more, got -0.1"),
        ({"noise_std": float("nan")}, "zero or more, got nan"),
        ({"attractors": 1.5}, "number of images, zero or more; got 1.5"),
        ({"seed": -1}, "A seed is a whole number"),
    ],
)
def test_other_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        request(**settings)
