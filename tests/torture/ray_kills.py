"""Kill audits and paper runs on Ray, or their workers, and compare with undisturbed ones."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tests.torture.canonical import canonical, difference
from tests.torture.children import Child, Ended
from tests.torture.commands import COMMANDS, RESULTS, Command, audit_arguments
from tests.torture.kills import SIGNALS, interrupt
from tests.torture.outcome import Outcome, complaint
from tests.torture.ray_cluster import (
    Cluster,
    descendants,
    end_cluster,
    end_processes,
    remove_sessions,
    running_cluster,
    title,
)
from tests.torture.trial import Trial

PATIENCE = 600.0  # seconds of the clock; a quiet machine needs ten
MOST_KILLS = 3  # of workers in one run: recollect gives a task up that was lost four times
BETWEEN_KILLS = 3.0  # seconds at most
STARTING_SECONDS = 15.0  # of an audit that starts a cluster of its own
RESUMES = 3  # runs after which results must be whole, if the cluster itself is lost again and again
# Ray's C++ code ends the process by itself if its daemon ends or answers too late while the two get to know each
# other; no Python code runs any more. Such a run counts as interrupted: it is resumed, and nothing may be lost. The
# harness once caused this itself: it took Ray's agents for workers, and Ray's daemon ends when one of them is killed.
ENDED_BY_RAY = "Failed to register worker to Raylet"
CLUSTER_LOST = ("No Ray cluster can be reached", "missed too many heartbeats")  # of a starved machine, in a sentence


ON_RAY = {
    command.name: command
    for command in (
        Command(
            "audit on Ray",
            lambda inputs: audit_arguments(
                inputs, str(inputs / "model.safetensors"), "--masks", "all", "--methods", "blind,known"
            ),
        ),
        replace(COMMANDS["paper"], name="paper on Ray"),
    )
}


def run(trial: Trial) -> list[Outcome]:
    """Disturb one run; nothing is tried without Ray."""
    if find_spec("ray") is None:
        return []
    rng = trial.random()
    command = ON_RAY[rng.choice(sorted(ON_RAY))]
    reference = _reference(command, trial)
    victim = rng.choice(sorted(VICTIMS))
    kills, problem = VICTIMS[victim](command, trial, rng)
    if problem is None:
        problem = difference(canonical(trial.folder / RESULTS), canonical(reference / RESULTS))
    return [Outcome("kills", f"{command.name}, {victim}", problem, kills, evidence=trial.folder)]


def _kill_workers(command: Command, trial: Trial, rng: random.Random) -> tuple[int, str | None]:
    """Kill two or three workers of a run, which goes on without them to its end."""
    cluster = _quiet_cluster(trial)
    child = _start(command, trial, cluster)
    kills, ended = 0, None
    for _ in range(rng.randint(2, MOST_KILLS)):
        _await(child, lambda: bool(cluster.workers()))
        ended = child.ended_within(rng.uniform(0, BETWEEN_KILLS))
        if ended is not None:
            break
        if workers := cluster.workers():
            end_processes([rng.choice(workers)])
            kills += 1
    outcome = _wait(child, cluster) if ended is None else child.report(*ended)
    if not _lost_cluster(outcome):
        return kills, complaint(outcome, (0,))
    end_cluster(cluster)
    return kills, _finish(command, trial)


def _kill_driver(command: Command, trial: Trial, rng: random.Random) -> tuple[int, str | None]:
    """Kill the run itself, once or twice, at any moment from its start to its end."""
    kills, problem = 0, None
    for _ in range(rng.randint(1, 2)):
        cluster = _quiet_cluster(trial)
        child = _start(command, trial, cluster)
        if rng.random() < 0.7:
            _await(child, lambda: bool(cluster.workers()))  # noqa: B023
        number, delay = rng.choice((signal.SIGKILL, *SIGNALS)), rng.uniform(0, BETWEEN_KILLS)
        interruption = interrupt(child, number, delay)
        kills += interruption.was_sent
        problem = problem or interruption.problem(number, delay)
    return kills, problem or _finish(command, trial)


def _kill_with_cluster(command: Command, trial: Trial, rng: random.Random) -> tuple[int, str | None]:
    """Kill a run that has a cluster of its own, while the cluster starts or works."""
    number, delay = rng.choice((signal.SIGKILL, *SIGNALS)), rng.uniform(0, STARTING_SECONDS)
    child = replace(command, arguments=lambda inputs: [*command.arguments(inputs), "--on", "ray"]).start(
        trial.inputs, trial.folder
    )
    ended = child.ended_within(delay)
    if ended is not None:
        outcome, kills, problem = child.report(*ended), 0, complaint(child.report(*ended), (0,))
    else:
        cluster = descendants(child.pid)
        interruption = interrupt(child, number, 0)
        end_processes([pid for pid in cluster if "ray" in title(pid)])
        outcome, kills, problem = interruption.ended, int(interruption.was_sent), interruption.problem(number, delay)
    remove_sessions(child.pid)
    return kills, (None if _lost_cluster(outcome) else problem) or _finish(command, trial)


Disturbance = Callable[[Command, Trial, random.Random], tuple[int, str | None]]
VICTIMS: dict[str, Disturbance] = {
    "workers": _kill_workers, "driver": _kill_driver, "driver and cluster": _kill_with_cluster,
}  # fmt: skip


def _start(command: Command, trial: Trial, cluster: Cluster) -> Child:
    def prepare() -> None:
        command.prepare()
        os.environ.update(cluster.variables)

    on = ["--on", cluster.address]
    given = replace(command, arguments=lambda inputs: [*command.arguments(inputs), *on], prepare=prepare)
    return given.start(trial.inputs, trial.folder)


def _quiet_cluster(trial: Trial) -> Cluster:
    """Give a cluster on which the workers of a killed run have ended."""
    cluster = running_cluster(trial.shared / "ray")
    until = time.monotonic() + PATIENCE
    while cluster.workers() and time.monotonic() < until:
        time.sleep(0.1)
    return cluster


def _await(child: Child, condition: Callable[[], bool]) -> None:
    """Wait until something is so, or the run ends."""
    until = time.monotonic() + PATIENCE
    while child.is_running and not condition() and time.monotonic() < until:
        time.sleep(0.05)


def _wait(child: Child, cluster: Cluster) -> Ended:
    """Wait for the end by the clock: while workers compute, the run itself uses no CPU time."""
    if (ended := child.ended_within(PATIENCE)) is not None:
        return child.report(*ended)
    end_cluster(cluster)
    return child.wait(0)


def _lost_cluster(ended: Ended) -> bool:
    """Whether Ray failed and not recollect. The cluster is replaced then, and the run must resume to equal results."""
    told = ended.code == 2 and any(words in sentence for sentence in ended.sentences for words in CLUSTER_LOST)
    return told or ENDED_BY_RAY in ended.err


def _finish(command: Command, trial: Trial) -> str | None:
    """Run the command to its end."""
    for _ in range(RESUMES):
        cluster = _quiet_cluster(trial)
        ended = _wait(_start(command, trial, cluster), cluster)
        if not _lost_cluster(ended):
            return complaint(ended, (0,))
        end_cluster(cluster)
    return f"the cluster was lost {RESUMES} times"


def _reference(command: Command, trial: Trial) -> Path:
    """Run a command on Ray undisturbed, once for all trials."""
    folder = trial.shared / "references" / command.name
    if not (folder / "finished").exists():
        if problem := _finish(command, replace(trial, folder=folder)):
            raise RuntimeError(f"{command.name} fails undisturbed: {problem}")
        (folder / "finished").touch()
    return folder
