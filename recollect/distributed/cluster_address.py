"""How a Ray cluster is named on the command line; it is read without torch."""

from __future__ import annotations

import os
import re

from recollect.errors import InputError


def address_of(on: str) -> str:
    """Return the address as ray.init takes it; refuse text that is none."""
    if on == "ray":
        return os.environ.get("RAY_ADDRESS") or "local"
    if on == "auto" or re.fullmatch(r"(ray://)?[\w.\-]+:\d+", on):
        return on
    raise InputError(f"--on takes ray, ray://HOST:PORT, HOST:PORT or auto, not {on!r}.")
