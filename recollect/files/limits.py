"""How much a file may ask of this machine. Each limit can be raised by the environment variable that carries its name.

A small file can ask for any amount of memory or time. A file above a limit is refused before either is spent. The
refusal names the variable that raises the limit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from recollect.errors import InputError

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Limit:
    """The most that a file may have or ask for of one thing."""

    name: str
    default: int
    summary: str  # one line for the docs

    @property
    def variable(self) -> str:
        """Return the environment variable that sets the limit."""
        return f"RECOLLECT_MAX_{self.name}"

    @property
    def value(self) -> int:
        """Return the limit that holds now."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise InputError(f"The environment variable {self.variable} is a whole number, not {text[:40]!r}.")
        return int(text)

    def check(self, amount: int, sentence: str) -> None:
        """Refuse an amount above the limit; the sentence says what has the amount."""
        if amount > self.value:
            raise InputError(f"{sentence} {self.hint}")

    @property
    def hint(self) -> str:
        """Say what the limit is and how it is raised."""
        return f"The limit is {self.value:,}; if you trust the file, raise it with {self.variable}=NUMBER."


MODEL_GROWTH = Limit("MODEL_GROWTH", 64 * MIB, "bytes that a model's archive may unpack to beyond its own size")
MODEL_CODE = Limit("MODEL_CODE", 512 * KIB, "bytes of code in a TorchScript archive")
MODEL_PROGRAM = Limit("MODEL_PROGRAM", 16 * MIB, "bytes of the program in a .pt2 archive")
MODEL_LISTING = Limit("MODEL_LISTING", 4 * MIB, "bytes of the list of entries or tensors in a model's file")
LISTING = Limit("LISTING", 16 * MIB, "bytes of the list of entries in an archive of images")
PICKLE_STEPS = Limit("PICKLE_STEPS", 500_000, "steps of a pickle, with shared parts counted each time they are used")
IMAGE_PIXELS = Limit("IMAGE_PIXELS", 50_000_000, "pixels of one image file")
IMAGES = Limit("IMAGES", 2_000_000, "images in one source")
COLUMNS = Limit("COLUMNS", 100_000, "columns of a table")
SET_BYTES = Limit("SET_BYTES", 4 * GIB, "bytes of the images that are read from one source, unless it is a `.npy`")
SET_GROWTH = Limit("SET_GROWTH", 256 * MIB, "bytes that packed images may unpack to beyond 16 times their own size")
DECODED_GROWTH = Limit("DECODED_GROWTH", GIB, "bytes that image files may decode to beyond 200 times their own size")
PRIOR_SIDE = Limit("PRIOR_SIDE", 1024, "pixels of a side of a diffusion prior's images")
RECORD_BYTES = Limit("RECORD_BYTES", 24 * MIB, "bytes of a JSON file, unpacked; a record may have 2,048 an image")
RECORD_PARTS = Limit("RECORD_PARTS", 1_000_000, "lists and objects in a JSON file")

DEEPEST_RECORD = 64  # lists and objects inside each other in a JSON file; records have five
PACKED, DECODED = 16, 200  # how much larger honest arrays and honest pictures are than their files, at most
