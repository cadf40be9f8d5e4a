"""A Ray cluster for all trials: it starts once, lives as long as the process that started it, and is replaced if lost.

Run as a program it is the head of that cluster.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recollect.distributed.worker import Worker
from tests.torture.children import ROOT

STARTING = 300.0  # seconds for a cluster on a busy machine
TOKEN = "RAY_AUTH_TOKEN"  # without which Ray lets nobody connect
WITH_TOKEN = {"RAY_AUTH_MODE": "token"}
WORKERS = 2
OBJECT_BYTES = 80 * 1024**2
# How the processes of recollect's workers are called. Ray's own agents are called ray:: too, and its daemon ends when
# one of them is killed.
WORKER = f"ray::{Worker.__name__}"


@dataclass(frozen=True)
class Cluster:
    """The address of a running cluster, the process that holds it, and what it asks of those who connect."""

    address: str
    pid: int
    token: str

    @property
    def variables(self) -> dict[str, str]:
        """What the environment of a program must hold that connects."""
        return {**WITH_TOKEN, TOKEN: self.token}

    @property
    def is_running(self) -> bool:
        return "tests.torture.ray_cluster" in title(self.pid)

    def workers(self) -> list[int]:
        """List the workers that an audit has now."""
        return [pid for pid in sorted(descendants(self.pid)) if title(pid).startswith(WORKER)]


def running_cluster(folder: Path) -> Cluster:
    """Give the cluster that an earlier trial started in this folder, or start one."""
    path = folder / "cluster.json"
    if path.is_file() and (cluster := _read(path)).is_running:
        return cluster
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0",
        **WITH_TOKEN, TOKEN: secrets.token_hex(32),
    }  # fmt: skip
    with (folder / "cluster.txt").open("wb") as log:
        command = [sys.executable, "-m", "tests.torture.ray_cluster", str(path), str(os.getpid())]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    until = time.monotonic() + STARTING
    while not path.is_file():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"No Ray cluster starts: {(folder / 'cluster.txt').read_text()[-2000:]}")
        time.sleep(0.2)
    return _read(path)


def end_cluster(cluster: Cluster) -> None:
    """End a cluster of which a part was lost."""
    end_processes([*descendants(cluster.pid), cluster.pid])
    remove_sessions(cluster.pid)


def _read(path: Path) -> Cluster:
    return Cluster(**json.loads(path.read_text()))


def descendants(pid: int) -> list[int]:
    """List the processes that a process has started, directly or not."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += children
        waiting += children
    return found


def title(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    return ""


def end_processes(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove_sessions(pid: int) -> None:
    """Remove what a cluster left on the disk; its folder has the number of the process that started it."""
    for folder in (Path(tempfile.gettempdir()) / "ray").glob(f"session_*_{pid}"):
        shutil.rmtree(folder, ignore_errors=True)


def main(path: Path, parent: int) -> None:
    import ray

    ray.init(num_cpus=WORKERS, object_store_memory=OBJECT_BYTES, include_dashboard=False, log_to_driver=False)
    facts = {"address": ray.get_runtime_context().gcs_address, "pid": os.getpid(), "token": os.environ[TOKEN]}
    new = path.with_suffix(".new")
    new.touch(0o600)
    new.write_text(json.dumps(facts))
    new.replace(path)
    while os.getppid() == parent:
        time.sleep(0.5)
    ray.shutdown()
    remove_sessions(os.getpid())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
