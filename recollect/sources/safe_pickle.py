"""Pickles from strangers: numpy arrays of bytes and plain containers are admitted, and nothing else.

Nothing that a pickle names is ever imported or called: the few names that an array needs are answered by
stand-ins that only remember what they were given, and the array is built from that here.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np

from recollect.counting import with_article
from recollect.errors import InputError
from recollect.files.pickles import check_work


def load(data: bytes, name: str) -> Any:
    """Return the content of a pickle, arrays included; `name` is for the error."""
    try:
        check_work(data, name)
        return _Strict(data).content()
    except InputError:
        raise
    except _Refused as error:
        raise InputError(f"{name} is refused: {error}. Nothing of it was run.") from None
    except Exception as error:  # a broken pickle can fail in any operation
        raise InputError(f"{name} is not a readable pickle ({type(error).__name__}: {str(error)[:200]}).") from None


class _Refused(Exception):
    """A pickle asked for something other than arrays and plain containers."""


class _Strict(pickle._Unpickler):  # type: ignore[name-defined, misc, unused-ignore]
    # The unpickler written in Python: the one in C sizes its table by a number that the file chooses.

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data), encoding="bytes")
        self.array_class: Any
        self.array_class, self.admitted = _stand_ins(len(data))

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.admitted[module, name]
        except (KeyError, TypeError):
            raise _Refused(f"it asks for {module}.{name}, and only arrays and plain containers are admitted") from None

    def content(self) -> Any:
        """Replace stand-ins by arrays where a batch has them: at the top, or in a dict at the top."""
        loaded = self.load()
        if isinstance(loaded, dict):
            return {key: self._built(item) for key, item in loaded.items()}
        return self._built(loaded)

    def _built(self, value: Any) -> Any:
        return _array(value.state) if isinstance(value, self.array_class) else value


def _stand_ins(most_bytes: int) -> tuple[type, dict[tuple[str, str], Any]]:
    """Make new stand-ins for every pickle, which can write to what it is given; `most_bytes` is its own length."""
    encoded = 0

    class Kind:
        code: Any = None

        def __init__(self, code: Any = None, *_: Any) -> None:
            self.code = code

        def __setstate__(self, state: Any) -> None:
            """Ignore byte order and the like, which single bytes do not have."""

    class Array:
        state: Any = None

        def __init__(self, *_: Any) -> None:
            pass

        def __setstate__(self, state: Any) -> None:
            self.state = state[1:]  # shape, kind, columns first?, bytes

    def from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> Array:
        array = Array()
        array.state = (shape, kind, order == "F", raw)
        return array

    def encode(text: str, _: Any = None) -> bytes:
        """Decode bytes as Python 3 writes them for Python 2; one text that is used many times could fill the memory."""
        nonlocal encoded
        encoded += len(text)
        if encoded > most_bytes:
            raise _Refused("it holds more bytes than the file itself")
        return text.encode("latin1")

    admitted: dict[tuple[str, str], Any] = {("numpy", "ndarray"): Array, ("numpy", "dtype"): Kind}
    for core in ("numpy.core", "numpy._core"):
        admitted[f"{core}.multiarray", "_reconstruct"] = Array
        admitted[f"{core}.numeric", "_frombuffer"] = from_buffer
    admitted["_codecs", "encode"] = encode
    return Array, admitted


def _array(state: Any) -> np.ndarray:
    shape, kind, columns_first, raw = state
    code = kind.code
    if code not in (b"u1", "u1") or not isinstance(raw, (bytes, bytearray)):
        named = repr(code[:20]) if isinstance(code, (str, bytes)) else with_article(type(code).__name__)
        raise _Refused(f"it holds an array of kind {named}, and only bytes ('u1') are expected")
    return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if columns_first else "C")
