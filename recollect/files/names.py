"""File names as text that every file and terminal takes."""

from __future__ import annotations

import os
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(name: str) -> str:
    r"""Write a file name so that it can stand in any record, table or report.

    A name may hold bytes that are no UTF-8, which Python reads as surrogates, and control characters. Such bytes are
    written as \xNN, and a backslash as two. Names without them, and without \x itself, stay as they are. No two names
    become one text.
    """
    content = os.fsencode(name)
    try:
        is_plain = not _CONTROL.search(content.decode()) and "\\x" not in name
    except UnicodeDecodeError:
        is_plain = False
    if is_plain:
        return name
    text = content.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match[0].encode()), text)
