"""Where images come from: a source address, `SOURCE[:PATH][?parameter=value&...]`, names each set."""

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names
from recollect.sources.base import SOURCES, Archive, Catalogue, Source

if TYPE_CHECKING:
    from recollect.sources.open_source import control_of, load, runs_code
    from recollect.sources.splits import Split, reproduce, split

__getattr__ = lazy_names(
    __name__,
    {
        "open_source": ["control_of", "load", "runs_code"],
        "splits": ["Split", "reproduce", "split"],
    },
)

__all__ = [
    "SOURCES",
    "Archive",
    "Catalogue",
    "Source",
    "Split",
    "control_of",
    "load",
    "reproduce",
    "runs_code",
    "split",
]
