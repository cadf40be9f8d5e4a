"""One small real cluster for all tests here."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from recollect.distributed import WorkerPool, open_pool

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ROOM = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head with one CPU."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**ROOM, "include_dashboard": False})
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def second(cluster: Any) -> Any:
    """Another machine with one CPU; a test may remove it."""
    import ray

    nodes = [node for node in cluster.list_all_nodes() if node != cluster.head_node]
    node = nodes[0] if nodes else cluster.add_node(**ROOM)
    patience = time.monotonic() + 300
    while ray.cluster_resources().get("CPU") != 2 and time.monotonic() < patience:
        time.sleep(0.2)  # one that was removed is counted for some seconds more
    return node


@pytest.fixture(scope="session")
def session_pool(cluster: Any) -> Iterator[WorkerPool]:
    """Workers that live through all tests, and through what is done to them there."""
    with open_pool("ray", "cpu") as pool:
        yield pool


@pytest.fixture
def pool(session_pool: WorkerPool, second: Any) -> WorkerPool:
    assert len(session_pool) == 2
    return session_pool


# Connecting is tested in a process without a cluster, and starting workers while none holds a CPU.
ORDER = (
    "test_cluster", "test_could_not_start", "test_worker_pool", "test_equal_records", "test_lost_machine",
    "test_interruptions",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: ORDER.index(item.path.stem) if item.path.stem in ORDER else -1)
