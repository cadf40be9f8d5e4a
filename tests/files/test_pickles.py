import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.files.limits import PICKLE_STEPS
from recollect.files.pickles import check_work

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_of_every_protocol_pass(value: Any, protocol: int) -> None:
    check_work(pickle.dumps(value, protocol), "file")


@given(st.binary(max_size=200))
def test_any_bytes_are_followed_or_refused(data: bytes) -> None:
    with suppress(ValueError, IndexError):  # InputError is a ValueError
        check_work(b"\x80\x02" + data, "file")


def doubled(value: Any, times: int, join: Any) -> bytes:
    for _ in range(times):
        value = join(value)
    return pickle.dumps(value, 2)


@pytest.mark.parametrize("join", [lambda part: (part, part), lambda part: {"a": part, "b": part}, lambda p: [p, p]])
def test_shared_parts_count_each_time_they_are_used(join: Any) -> None:
    """Counting 2**60 parts one by one would never end."""
    check_work(doubled(1, 8, join), "file")
    with pytest.raises(InputError, match=r"^file is a pickle of more than 500,000 steps"):
        check_work(doubled(1, 60, join), "file")


def test_a_list_that_is_remembered_empty_counts_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PICKLE_STEPS.variable, "2000")
    filled_then_used = b"\x80\x02]q\x00(" + b"N" * 900 + b"e0(" + b"h\x00" * 3 + b"t."
    with pytest.raises(InputError, match="2,000 steps"):
        check_work(filled_then_used, "file")


def test_a_mark_can_be_dropped() -> None:
    check_work(b"\x80\x02(N(00N\x85.", "file")
