"""Audit a model: from images to a number that can be defended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.auditing.assertion import NotPassed, assert_not_memorized
    from recollect.auditing.measure import record_of, recover
    from recollect.auditing.progress import AuditProgress, shown_progress
    from recollect.auditing.request import AuditRequest
    from recollect.auditing.result import Audit
    from recollect.auditing.run import audit, run_audit
    from recollect.auditing.shards import ShardedMeasurer
    from recollect.auditing.workload import OutOfTime

__getattr__ = lazy_names(
    __name__,
    {
        "assertion": ["NotPassed", "assert_not_memorized"],
        "measure": ["record_of", "recover"],
        "progress": ["AuditProgress", "shown_progress"],
        "request": ["AuditRequest"],
        "result": ["Audit"],
        "run": ["audit", "run_audit"],
        "shards": ["ShardedMeasurer"],
        "workload": ["OutOfTime"],
    },
)

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
