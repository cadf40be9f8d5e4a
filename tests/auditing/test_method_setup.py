from dataclasses import dataclass
from typing import Any, ClassVar, cast

from recollect.auditing.method_setup import (
    are_built,
    attacks,
    build,
    counted_methods,
    method_for,
    method_identity,
    names_with,
    weaknesses,
    with_companions,
)
from recollect.auditing.request import read_methods
from recollect.degradation import Blur, all_erased, degradation, half_kept
from recollect.methods import DDNM, METHODS, Biharmonic, Blind, Iterate, KnownMask, Method, Refined, ZeroRule
from tests.auditing.making import images
from tests.gaussian import GaussianPrior


def names(methods: Any, black: bool = True) -> list[str]:
    return list(with_companions(read_methods(methods), black=black))


def ddnm() -> DDNM:
    return DDNM(GaussianPrior.low_rank((3, 8, 8), rank=1), steps=2)


def test_baselines_stand_beside_the_methods_that_name_them() -> None:
    assert names(["known", "blind", "iterate"]) == ["known", "blind", "zero-rule", "iterate"]
    assert names("zero-rule, blind") == ["zero-rule", "blind"]
    assert names("iterate") == ["iterate"]
    assert names({"mine": "blind"}) == ["mine", "zero-rule"]
    assert names("blind,known", black=False) == ["blind", "known"]
    assert names("blind,zero-rule", black=False) == ["blind", "zero-rule"]
    assert names("blind,ddnm") == ["blind", "zero-rule", "ddnm", "biharmonic"]
    assert names("biharmonic,ddnm") == ["biharmonic", "ddnm"]
    assert names({"biharmonic": ZeroRule(gamma=0.1), "ddnm": "ddnm"}) == ["biharmonic", "ddnm"]


def test_an_object_brings_a_baseline_along_only_if_that_needs_no_settings() -> None:
    assert names([Blind(gamma=0.2)]) == ["blind"]
    assert names([ddnm()]) == ["ddnm", "biharmonic"]


def test_methods_are_built_when_their_settings_are_known() -> None:
    named = read_methods("blind,iterate,known-400,refined")
    some = build(named, paste=False)
    assert (some["iterate"], some["blind"], are_built(some)) == (Iterate(), Blind, False)
    built = build(some, gamma=0.3, start=all_erased, paste=False)
    assert are_built(built)
    assert built["blind"] == Blind(gamma=0.3, start=all_erased)
    assert built["refined"] == Refined(gamma=0.3, start=all_erased, paste=False)
    assert (built["known-400"].gamma, built["known-400"].steps, built["known-400"].paste) == (0.3, 400, False)


def test_an_object_keeps_its_own_settings() -> None:
    mine = Blind(gamma=0.7, limit=3)
    assert build({"mine": mine}, gamma=0.3, start=all_erased) == {"mine": mine}


def test_a_prior_and_the_strongest_settings_go_to_the_method_that_takes_one() -> None:
    prior = GaussianPrior.low_rank((3, 8, 8), rank=1)
    built = build(read_methods("ddnm"), prior=prior, seed=7)["ddnm"]
    assert (built.prior, built.seed, built.draws) == (prior, 7, 4)


def test_a_start_is_in_the_family_of_the_damage() -> None:
    half, blur = (degradation(name, (3, 8, 8)) for name in ("half", "blur:1"))
    assert method_for(Blind(start=half_kept), half) == Blind(start=half_kept)
    assert isinstance(method_for(Blind(), blur).start(images(3, 1).pixels), Blur)
    assert method_for(KnownMask(), blur) == KnownMask()


def test_every_attack_counts_and_without_one_the_method_that_leads() -> None:
    assert counted_methods({"blind": Blind(), "refined": Refined(), "known": KnownMask()}) == ["refined", "blind"]
    assert counted_methods({"iterate": Iterate(), "mine": Refined()}) == ["mine", "iterate"]
    assert counted_methods({"known": KnownMask(), "zero-rule": ZeroRule()}) == ["zero-rule"]
    assert counted_methods({"known": KnownMask(), "biharmonic": Biharmonic()}) == ["known"]


def test_an_attack_uses_the_model_and_is_not_told_the_mask() -> None:
    names = ("blind", "refined", "iterate", "zero-rule", "known", "known-400", "biharmonic", "ddnm-model")
    methods = build({name: METHODS[name] for name in names}, gamma=1.0, start=half_kept)
    assert attacks({**methods, "ddnm": ddnm()}) == ["refined", "blind", "iterate", "zero-rule"]


def test_what_weakens_the_strongest_attack_is_said() -> None:
    def said(**methods: Any) -> list[str]:
        return weaknesses(methods, Refined(), (0.1, 3.0))

    assert said(refined=Refined(gamma=0.1, limit=5), other=Iterate()) == []
    assert said(mine=Refined(gamma=50.0, limit=2)) == [
        "a gamma of 50, outside 0.1 to 3",
        "at most 1,240 passes through the model, usually 13,000",
    ]
    assert said(mine=Refined(gamma=0.01, limit=1), weak=Refined(gamma=0.05)) == ["a gamma of 0.05, outside 0.1 to 3"]
    assert said(blind=Blind(gamma=50.0, limit=1)) == []


def test_a_preset_has_the_identity_of_the_method_that_it_presets() -> None:
    assert method_identity(cast(Any, METHODS["known-400"])(gamma=0.1)) == method_identity(KnownMask(0.1, steps=400))
    assert method_identity(Biharmonic()) == {"kind": "Biharmonic"}


class Plain:
    """A method that is no `Method`."""

    name, knows_truth = "plain", False

    def __repr__(self) -> str:
        return "Plain()"


@dataclass(frozen=True)
class Strong(Method):
    name: ClassVar[str] = "strong"
    headline_rank: ClassVar[int] = 9


def test_what_an_object_does_not_say_of_itself_has_a_default() -> None:
    methods = {"plain": Plain(), "strong": Strong()}
    assert names_with(methods, "sees_model") == ["plain", "strong"]
    assert counted_methods(methods) == attacks(methods) == ["strong", "plain"]
    assert method_identity(Plain()) == {"kind": "Plain", "repr": "Plain()"}
