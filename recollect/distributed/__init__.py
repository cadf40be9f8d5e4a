"""Tasks on the machines of a Ray cluster. Nothing else in the package imports Ray, which is an extra."""

from recollect.distributed.cluster import WorkerResources, open_pool
from recollect.distributed.worker_pool import WorkerPool

__all__ = ["WorkerPool", "WorkerResources", "open_pool"]
