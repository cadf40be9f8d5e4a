"""Audit a model: from images to a number that can be defended."""

from recollect.auditing.assertion import NotPassed, assert_not_memorized
from recollect.auditing.audit import audit, run_audit
from recollect.auditing.measure import record_of, recover
from recollect.auditing.progress import AuditProgress, shown_progress
from recollect.auditing.request import AuditRequest
from recollect.auditing.result import Audit
from recollect.auditing.shards import ShardedMeasurer
from recollect.auditing.workload import OutOfTime

__all__ = [
    "Audit",
    "AuditProgress",
    "AuditRequest",
    "NotPassed",
    "OutOfTime",
    "ShardedMeasurer",
    "assert_not_memorized",
    "audit",
    "record_of",
    "recover",
    "run_audit",
    "shown_progress",
]
