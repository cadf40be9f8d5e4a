"""Where images come from: one spelling, `SOURCE[:PATH][?parameter=value&...]`, for all of them."""

from recollect.sources.duplicates import Duplicates, Pair, find_duplicates
from recollect.sources.load import SOURCES, load
from recollect.sources.splits import Split, reproduce, split

__all__ = ["SOURCES", "Duplicates", "Pair", "Split", "find_duplicates", "load", "reproduce", "split"]
