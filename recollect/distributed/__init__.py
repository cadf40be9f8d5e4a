"""Tasks on the machines of a Ray cluster. Nothing else in the package imports Ray, which is an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_names import lazy_names

if TYPE_CHECKING:
    from recollect.distributed.cluster import WorkerResources, open_pool
    from recollect.distributed.worker_pool import WorkerPool

__getattr__ = lazy_names(__name__, {"cluster": ["WorkerResources", "open_pool"], "worker_pool": ["WorkerPool"]})

__all__ = ["WorkerPool", "WorkerResources", "open_pool"]
