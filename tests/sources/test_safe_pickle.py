import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.sources.safe_pickle import load
from tests.sources.conftest import python2_batch

Values = Callable[..., np.ndarray]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_plain_containers_of_every_protocol_are_read(values: Values, protocol: int) -> None:
    content: dict[str, Any] = {"data": values(4, 6), "labels": [1, 2], "names": ("a", b"b", None, 1.5, {3: [True]})}
    loaded = load(pickle.dumps(content, protocol), "file")
    assert np.array_equal(loaded.pop("data"), content.pop("data"))
    assert loaded == content


def test_the_official_form_is_read(values: Values) -> None:
    data = values(5, 3072)
    loaded = load(python2_batch(data, [0, 1, 2, 3, 4]), "file")
    assert np.array_equal(loaded[b"data"], data)
    assert loaded[b"labels"] == [0, 1, 2, 3, 4]


def test_arrays_in_column_order_are_read(values: Values) -> None:
    data = np.asfortranarray(values(4, 6))
    for protocol in (2, 5):
        assert np.array_equal(load(pickle.dumps(data, protocol), "file"), data)


class Runs:
    """Pickles to a call."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_does_not(tmp_path: Path, protocol: int) -> None:
    sign = tmp_path / "it ran"
    hostile = pickle.dumps({b"data": Runs(os.mkdir, str(sign)), b"labels": []}, protocol)
    with pytest.raises(InputError, match=r"^evil is refused: it asks for \w+.mkdir.*Nothing of it was run"):
        load(hostile, "evil")
    assert not sign.exists()
    pickle.loads(hostile)  # the pickle is a real one: elsewhere it does run
    assert sign.exists()


@pytest.mark.parametrize(
    "hostile",
    [
        pickle.dumps(Runs(eval, "1")),
        pickle.dumps(Runs(np.fromfile, "/etc/passwd")),
        pickle.dumps(OrderedDict()),
        pickle.dumps(np.float64(1)),
        pickle.dumps(np.array([Runs(print, "x")], dtype=object)),
        pickle.dumps(np.zeros(3)),
        pickle.dumps(np.array(["a"])),
        b"\x80\x02cnumpy\nndarray.__class__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x16ndarray.__subclasses__\x93.",
        b"cnumpy.core.multiarray\nfromfile\n.",
    ],
)
def test_other_names_and_arrays_of_other_kinds_are_refused(hostile: bytes) -> None:
    with pytest.raises(InputError, match=r"^evil is refused"):
        load(hostile, "evil")


def test_writing_to_a_stand_in_does_no_lasting_harm(values: Values) -> None:
    # GLOBAL numpy ndarray, then BUILD with (None, {'__setstate__': 1}): attributes set on what was handed out.
    with pytest.raises(InputError):
        load(b"\x80\x02cnumpy\nndarray\n(N}U\x0c__setstate__K\x01stbcnumpy\nndarray\n)R}b.", "evil")
    data = values(3, 3)
    assert np.array_equal(load(pickle.dumps(data, 2), "file"), data)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"hello",
        b"\x80\x02",
        b"\x80\x02}q\x00(U\x04dataq\x01",
        b"\x80\x02]r" + struct.pack("<I", 2**31) + b"\x00",  # a huge memo number
        b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b".",  # a bytearray of four exabytes
        b"\x80\x02K\x01K\x02\x86R.",
    ],
)
def test_broken_pickles_are_refused(broken: bytes) -> None:
    with pytest.raises(InputError, match=r"^file is not a readable pickle"):
        load(broken, "file")


def test_a_pickle_cannot_choose_how_much_memory_is_taken() -> None:
    tracemalloc.start()
    try:
        assert load(b"\x80\x02]r" + struct.pack("<I", 2**27) + b".", "file") == []  # "remember this as number 2**27"
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_every_truncation_is_refused(values: Values) -> None:
    whole = python2_batch(values(2, 8), [1, 2])
    for keep in range(len(whole) - 1):
        with pytest.raises(InputError, match=r"^file is"):
            load(whole[:keep], "file")


@given(st.data())
def test_changed_pickles_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(python2_batch(np.zeros((2, 8), np.uint8), [1, 2]))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        load(bytes(content), "file")
