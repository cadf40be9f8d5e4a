"""What an audit says of the attacker that it assumes, and of the methods that it leaves out."""

from typing import Any

from recollect.methods import METHODS
from tests.auditing.making import small_audit


def scope(**more: Any) -> dict[str, Any]:
    return dict(small_audit(train=4, control=None, **{"masks": "half", **more}).facts["scope"])


def test_every_method_was_run_or_is_listed_as_not_run() -> None:
    found = scope(methods="iterate,known")
    for_any_model = {name for name, method in METHODS.items() if not method.only_diffusion}
    assert set(found["not_run"]) == for_any_model - {"iterate", "known"}
    assert found["not_run"]["blind"]["summary"] == METHODS["blind"].summary


def test_the_attacker_is_described_by_the_damage_and_by_what_is_known() -> None:
    attacker = " ".join(scope(methods="iterate", masks="half,dust", noise_std=0.05)["attacker"])
    assert "half, dust" in attacker
    assert "noise of standard deviation 0.05" in attacker
    assert "does not know the original image" in attacker
    assert "searched" not in attacker


def test_references_alone_are_no_attacker() -> None:
    assert "knows more than an attacker" in " ".join(scope(methods="known")["attacker"])
