"""Where images come from: a source address, `SOURCE[:PATH][?parameter=value&...]`, names each set."""

from recollect.sources.base import SOURCES, Archive, Catalogue, Source
from recollect.sources.duplicates import Duplicates, Pair, find_duplicates
from recollect.sources.load import load
from recollect.sources.splits import Split, reproduce, split

__all__ = [
    "SOURCES",
    "Archive",
    "Catalogue",
    "Duplicates",
    "Pair",
    "Source",
    "Split",
    "find_duplicates",
    "load",
    "reproduce",
    "split",
]
