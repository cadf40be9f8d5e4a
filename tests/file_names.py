"""From the text of a file name to the name, which shows that no two names become one text."""

import os
import re

_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")


def original_name(text: str) -> str:
    """Return the name of which `printable` made this text."""
    if "\\x" not in text:
        return text
    return os.fsdecode(_ESCAPED.sub(_unescaped, text.encode()))


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1] == b"\\":
        return b"\\"
    return bytes.fromhex(match[1][1:].decode())
