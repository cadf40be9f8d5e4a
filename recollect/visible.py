"""Text from files, made safe to print: a name or a message of a stranger cannot steer a terminal."""

from __future__ import annotations

HARMLESS = "\n\t\u202f"  # the last, a narrow space, groups the digits of large numbers


def visible(text: str) -> str:
    """Write control characters, and those that are unseen or turn text around, as escapes such as \\x1b."""
    if text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character.isprintable() or character in HARMLESS:
        return character
    return character.encode("unicode_escape").decode("ascii")
