"""Auditing a model: the straight line from images to a number that can be defended."""

from recollect.auditing.audit import audit
from recollect.auditing.measure import Narrator, record_of, recover
from recollect.auditing.result import Audit
from recollect.auditing.shards import Spread

__all__ = ["Audit", "Narrator", "Spread", "audit", "record_of", "recover"]
