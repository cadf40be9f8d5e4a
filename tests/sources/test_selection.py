from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.sources.address import Address
from recollect.sources.base import Catalogue
from recollect.sources.selection import draw, seeded_keys


def catalogue(labels: list[str] | None, count: int = 0, **others: object) -> Catalogue:
    ids = [f"image-{i}" for i in range(len(labels) if labels else count)]
    return Catalogue(ids, lambda positions, progress: np.zeros(1), labels, **others)  # type: ignore[arg-type]


def drawn(listed: Catalogue, **asked: object) -> list[int]:
    return draw(listed, Address("some", **asked)).tolist()  # type: ignore[arg-type]


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_train_and_control_share_nothing_and_are_equally_many(sizes: list[int], seed: int, data: st.DataObject) -> None:
    labels = [str(c) for c, size in enumerate(sizes) for _ in range(size)]
    if len(labels) < 2:
        return
    count = data.draw(st.integers(1, len(labels) // 2))
    train = drawn(catalogue(labels), count=count, seed=seed)
    control = drawn(catalogue(labels), count=count, seed=seed, part="control")
    assert len(set(train)) == len(set(control)) == count
    assert not set(train) & set(control)


def test_sets_of_one_seed_nest_from_both_ends() -> None:
    listed = catalogue(["a"] * 30 + ["b"] * 10)
    for part in ("train", "control"):
        large, small = (drawn(listed, count=n, part=part) for n in (20, 7))
        assert large[:7] == small
    assert not set(drawn(listed, count=32)) & set(drawn(listed, count=8, part="control"))


def test_count_takes_classes_in_proportion_for_both_parts() -> None:
    labels = ["a"] * 300 + ["b"] * 100
    for part in ("train", "control"):
        found = Counter(labels[p] for p in drawn(catalogue(labels), count=40, part=part))
        assert found == {"a": 30, "b": 10}


def test_per_class_takes_the_same_number_of_each() -> None:
    labels = [str(i % 5) for i in range(100)]
    train = drawn(catalogue(labels), per_class=3)
    control = drawn(catalogue(labels), per_class=3, part="control")
    for chosen in (train, control):
        assert Counter(labels[p] for p in chosen) == {str(c): 3 for c in range(5)}
    assert not set(train) & set(control)
    assert drawn(catalogue(labels), per_class=2) == train[:10]


def test_another_seed_draws_others() -> None:
    listed = catalogue(None, 1000)
    assert len(set(drawn(listed, count=100, seed=1)) & set(drawn(listed, count=100, seed=2))) < 30


def test_draw_does_not_depend_on_the_order_of_files() -> None:
    ids = [f"file-{i}" for i in range(50)]
    chosen = []
    for order in (ids, ids[::-1]):
        listed = Catalogue(order, lambda positions, progress: np.zeros(1))
        chosen.append([order[p] for p in drawn(listed, count=10)])
    assert chosen[0] == chosen[1]


def test_keys_are_the_same_everywhere_and_forever() -> None:
    assert seeded_keys(["a", "b\udcff"], 42).tolist() == [0x80DE2B4042B4F7C5, 0x9A4B84CC75651D99]  # by sha256sum


def test_one_of_each_group_at_most() -> None:
    groups = [i // 3 for i in range(60)]
    listed = catalogue([str(i % 2) for i in range(60)], groups=groups)
    train, control = drawn(listed, count=10), drawn(listed, count=10, part="control")
    taken = [groups[p] for p in train + control]
    assert len(set(taken)) == 20
    assert sorted(groups[p] for p in drawn(listed)) == list(range(20))
    assert {p % 3 for p in drawn(listed)} == {0, 1, 2}  # not always the first of a group


def test_parts_are_kept_and_their_classes_taken_in_turn() -> None:
    labels = ["a"] * 80 + ["b"] * 20
    parts = ["train", "control"] * 50
    listed = catalogue(labels, parts=parts)
    for part in ("train", "control"):
        chosen = drawn(listed, count=12, part=part)
        assert {parts[p] for p in chosen} == {part}
        assert Counter(labels[p] for p in chosen) == {"a": 6, "b": 6}


def test_all_images_come_in_the_order_of_the_source() -> None:
    assert drawn(catalogue(None, 9)) == list(range(9))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"count": 11}, "10 at most"),
        ({"count": 6, "part": "control"}, "5 at most, so that train can have as many of the 10"),
        ({"per_class": 3}, "class b has 2"),
        ({"per_class": 2, "part": "control"}, "1 at most for each of train and control"),
        ({"part": "control"}, "count=N (at most 5)"),
    ],
)
def test_asking_for_more_than_there_is_is_refused(asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        drawn(catalogue(["a"] * 8 + ["b"] * 2), **asked)
    assert sentence in str(error.value)


def test_per_class_without_classes_is_refused() -> None:
    with pytest.raises(InputError, match="no classes"):
        drawn(catalogue(None, 10), per_class=1)


def test_a_hundred_thousand_are_drawn_from_quickly() -> None:
    chosen = drawn(catalogue([str(i % 200) for i in range(100_000)]), per_class=125)
    assert len(np.unique(chosen)) == 25_000
