import pytest

from recollect.cli import listings
from recollect.degradation import FILLS
from recollect.errors import InputError
from recollect.methods import METHODS
from recollect.paper.experiments import EXPERIMENTS
from recollect.sources import SOURCES


def test_every_member_is_listed_with_its_summary() -> None:
    for name, method in METHODS.items():
        assert f"- **{name}**: {method.summary}" in listings.methods()
    for name, fill in FILLS.items():
        assert f"- **{name}**: {fill.summary}" in listings.fills()
    assert listings.sources().startswith(f"One of {', '.join(SOURCES)}. ")
    assert list(listings.declared_experiments()) == list(EXPERIMENTS)


def test_lists_replace_their_names() -> None:
    text = listings.filled("Methods. {methods}")
    assert text.startswith("Methods. Default: blind,refined,iterate,known.\n\n- **blind**: ")
    assert listings.filled("Nothing to fill.") == "Nothing to fill."
    for name in listings.LISTINGS:
        assert name not in listings.filled(name)


def test_a_registry_that_cannot_be_read_does_not_break_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise InputError("The method 'x' of the package y cannot be loaded.")

    monkeypatch.setitem(listings.LISTINGS, "{methods}", broken)
    assert listings.filled("{methods}") == "The method 'x' of the package y cannot be loaded."
