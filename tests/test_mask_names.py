import pytest

from recollect.degradation import DEGRADATIONS, FILLS, PAPER_MASKS
from recollect.mask_names import FILL_SUMMARIES, PAPER_MASK_NAMES, is_mask, no_such_mask


def test_the_names_are_those_of_the_masks_and_fills() -> None:
    assert tuple(PAPER_MASKS) == PAPER_MASK_NAMES
    assert tuple(FILLS) == tuple(FILL_SUMMARIES)


@pytest.mark.parametrize("text", ["dust", "random:0.3", "random-each:30%", "columns:age", "mine.PNG", "a/b.npy"])
def test_masks_are_known_by_their_text(text: str) -> None:
    assert is_mask(text)


@pytest.mark.parametrize("text", ["", "Dust", "random", "columns", "mine.jpg", "randomly:0.3"])
def test_other_texts_are_no_masks(text: str) -> None:
    assert not is_mask(text)


def test_the_error_lists_masks_and_other_damage() -> None:
    sentence = str(no_such_mask("foo", [kind.example for kind in DEGRADATIONS.values()]))
    assert all(name in sentence for name in ("'foo'", *PAPER_MASK_NAMES, "blur:1.5", ".npy"))
