"""Kill audits on a local Ray cluster, or one of their workers, and compare with an undisturbed one."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tests.torture.canonical import canonical, difference
from tests.torture.children import Child, Ended
from tests.torture.commands import COMMANDS, RESULTS, Command
from tests.torture.kills import SIGNALS, interrupt
from tests.torture.outcome import Outcome, complaint
from tests.torture.trial import Trial

PATIENCE = 900.0  # seconds of the clock; a quiet machine needs thirty
STARTING_SECONDS = 15.0  # in which a driver is killed that has no worker yet
WORKING_SECONDS = 8.0  # in which it, or a worker, is killed once there is one
WORKER, IDLE = "ray::", "ray::IDLE"  # how processes of workers are called
NAME = "audit on Ray"


def on_ray(command: Command) -> Command:
    return replace(command, name=NAME, arguments=lambda inputs: [*command.arguments(inputs), "--on", "ray"])


COMMAND = on_ray(COMMANDS["audit"])


def run(trial: Trial) -> list[Outcome]:
    """Disturb one audit; nothing is tried without Ray, or while another trial has a cluster."""
    if find_spec("ray") is None:
        return []
    with _one_cluster(trial.shared / "ray.lock") as free:
        if not free:
            return []
        try:
            return [_disturb(trial, trial.random(), _reference(trial))]
        except ClusterFailed:
            return []


class ClusterFailed(Exception):
    """The machine is too busy for a cluster to start, or to send heartbeats in time; recollect says so."""


def _disturb(trial: Trial, rng: random.Random, reference: Path) -> Outcome:
    victim, disturb = rng.choice([("worker", _kill_worker), ("driver", _kill_driver)])
    kills, problem = disturb(trial, rng)
    if problem is None:
        problem = _problem(_finish(trial), (0,))
    if problem is None:
        problem = difference(canonical(trial.folder / RESULTS), canonical(reference / RESULTS))
    return Outcome("kills", f"{NAME}, {victim}", problem, kills, evidence=trial.folder)


def _kill_driver(trial: Trial, rng: random.Random) -> tuple[int, str | None]:
    """Kill the audit while its cluster starts, or while its workers compute."""
    number, early = rng.choice((signal.SIGKILL, *SIGNALS)), rng.random() < 0.3
    child = COMMAND.start_cold(trial.inputs, trial.folder)
    if not early:
        _await_workers(child)
    ended = child.ended_within(rng.uniform(0, STARTING_SECONDS if early else WORKING_SECONDS))
    if ended is not None:
        return 0, _problem(child.report(*ended), (0,))
    cluster = descendants(child.pid)
    interruption = interrupt(child, number, 0)
    end_processes([pid for pid in ray_processes() if pid in cluster])
    _remove_sessions(child.pid)
    _check_cluster(interruption.ended)
    return int(interruption.was_sent), interruption.problem(number, time.monotonic() - child.began)


def _kill_worker(trial: Trial, rng: random.Random) -> tuple[int, str | None]:
    """Kill a worker that computes; the audit goes on without it."""
    child = COMMAND.start_cold(trial.inputs, trial.folder)
    _await_workers(child)
    time.sleep(rng.uniform(0, WORKING_SECONDS))
    workers = _workers(child)[:1]  # none where the audit has ended meanwhile: nothing was killed then
    end_processes(workers)
    return len(workers), _problem(_watched_end(child), (0,))


def _await_workers(child: Child) -> None:
    """Wait until a worker computes, or the audit ends."""
    until = time.monotonic() + PATIENCE
    while _is_running(child.pid) and not _workers(child) and time.monotonic() < until:
        time.sleep(0.2)


def _workers(child: Child) -> list[int]:
    titles = {pid: _title(pid) for pid in sorted(descendants(child.pid))}
    return [pid for pid, title in titles.items() if title.startswith(WORKER) and not title.startswith(IDLE)]


def _remove_sessions(pid: int) -> None:
    """Remove what the cluster of a driver that was killed left on the disk."""
    for folder in (Path(tempfile.gettempdir()) / "ray").glob(f"session_*_{pid}"):
        shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: int) -> bool:
    """Whether a child has not ended; one that has is waited for later."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _problem(ended: Ended, allowed: tuple[int, ...]) -> str | None:
    _check_cluster(ended)
    return complaint(ended, allowed)


def _check_cluster(ended: Ended) -> None:
    did_not_start = any("No Ray cluster can be reached" in sentence for sentence in ended.sentences)
    gave_up = "Failed to register worker to Raylet" in ended.err  # Ray itself ends the process then
    was_lost = ended.code == 2 and "missed too many heartbeats" in ended.err
    if did_not_start or gave_up or was_lost:
        raise ClusterFailed


def _watched_end(child: Child) -> Ended:
    """Wait for the end, and end what is left of the cluster."""
    cluster: set[int] = set()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        cluster |= set(descendants(child.pid))
        if (ended := child.ended_within(1.0)) is not None:
            end_processes(sorted(cluster & set(ray_processes())))
            _remove_sessions(child.pid)
            return child.report(*ended)
    end_processes(descendants(child.pid))
    _remove_sessions(child.pid)
    return child.wait(0)


def _finish(trial: Trial) -> Ended:
    return _watched_end(COMMAND.start_cold(trial.inputs, trial.folder))


def _reference(trial: Trial) -> Path:
    """Run the audit on Ray undisturbed, once for all trials."""
    folder = trial.shared / "references" / "ray"
    if not (folder / "finished").exists():
        problem = _problem(_watched_end(COMMAND.start_cold(trial.inputs, folder)), (0,))
        if problem:
            raise RuntimeError(f"{NAME} fails undisturbed: {problem}")
        (folder / "finished").touch()
    return folder


@contextmanager
def _one_cluster(path: Path) -> Iterator[bool]:
    """Say whether no other trial has a cluster; the machine has memory for one."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


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


def ray_processes() -> list[int]:
    """List processes of Ray: an id that was noted may belong to another program by now."""
    folders = [folder for folder in Path("/proc").glob("[0-9]*") if "ray" in _title(int(folder.name))]
    return [int(folder.name) for folder in folders]


def end_processes(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _title(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""
