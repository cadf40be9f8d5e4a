"""The committed records of the paper's experiments, read once for all tests of a process."""

from functools import cache

from recollect.paper.store import Store
from recollect.records import Record
from tests.read_only_repository import ROOT

PAPER = ROOT / "results" / "paper"


@cache
def committed_records(scale: str) -> tuple[Record, ...]:
    return tuple(Store(PAPER / scale).records())
