"""Audit a model: from images to a number that can be defended."""

from recollect.auditing.audit import audit, run_audit
from recollect.auditing.measure import record_of, recover
from recollect.auditing.progress import AuditProgress
from recollect.auditing.request import AuditRequest
from recollect.auditing.result import Audit
from recollect.auditing.shards import Spread

__all__ = ["Audit", "AuditProgress", "AuditRequest", "Spread", "audit", "record_of", "recover", "run_audit"]
