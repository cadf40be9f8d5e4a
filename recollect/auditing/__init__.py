"""Auditing a model: the straight line from images to a number that can be defended."""

from recollect.auditing.audit import Narrator, audit, recover
from recollect.auditing.result import Audit

__all__ = ["Audit", "Narrator", "audit", "recover"]
