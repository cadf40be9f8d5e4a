"""Stream images through any method in bounded memory."""

from recollect.engine.runtime import (
    ARITHMETIC_IMAGES,
    Autoencoder,
    Remembered,
    Runtime,
    arithmetic_of,
    prepare,
    shared_runtimes,
    without_acceleration,
)
from recollect.engine.working_set import Active, run

__all__ = [
    "ARITHMETIC_IMAGES",
    "Active",
    "Autoencoder",
    "Remembered",
    "Runtime",
    "arithmetic_of",
    "prepare",
    "run",
    "shared_runtimes",
    "without_acceleration",
]
