"""File names as text that every file and terminal takes, and back."""

from __future__ import annotations

import os
import re

_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(name: str) -> str:
    r"""Write a file name so that it can stand in any record, table or report.

    A name may hold bytes that are no UTF-8, which Python reads as surrogates, and control characters. Such bytes are
    written as \xNN, and a backslash as two. Names without them, and without \x itself, stay as they are, so that
    `original_name` gives every name back.
    """
    content = os.fsencode(name)
    try:
        is_plain = not _CONTROL.search(content.decode()) and "\\x" not in name
    except UnicodeDecodeError:
        is_plain = False
    if is_plain:
        return name
    text = content.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in found[0].encode()), text)


def original_name(text: str) -> str:
    """Return the name of which `printable` made this text."""
    if "\\x" not in text:
        return text
    return os.fsdecode(_ESCAPED.sub(_unescaped, text.encode()))


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1] == b"\\":
        return b"\\"
    return bytes.fromhex(found[1][1:].decode())
