"""Kill commands at random moments, resume them, and compare with what an undisturbed run leaves."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from tests.torture.canonical import canonical, difference, leftovers
from tests.torture.children import Child, Ended
from tests.torture.commands import PATIENCE, RESULTS, Command
from tests.torture.outcome import Outcome, complaint
from tests.torture.trial import Trial

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_KILLS = 4
AT_WRITE_SHARE = 0.3  # of kills at the moment of a write
MOST_WRITES = 30
COLD_SHARE = 0.15  # of starts in a new interpreter
IMPORT_SECONDS = 6.0  # of a new interpreter, added to the time in which a kill may fall
STOPPED = (0, 1, 130, 143)  # exit codes after an interruption: finished before it, or stopped by it


@dataclass(frozen=True)
class Interruption:
    """How a child ended to which a signal was sent, unless it ended before."""

    ended: Ended
    was_sent: bool
    could_handle: bool  # Python itself needs a moment to start, in which no program can handle a signal

    def problem(self, number: signal.Signals, delay: float, allowed: tuple[int, ...] = STOPPED) -> str | None:
        if number == signal.SIGKILL or not self.could_handle:
            return None
        problem = complaint(self.ended, allowed)
        return f"{number.name} after {delay:.2f} s: {problem}" if problem else None


def run(trial: Trial) -> list[Outcome]:
    """Kill one command up to four times, then let it finish."""
    rng = trial.random()
    command = trial.draw_command(rng)
    sent = 0
    for _ in range(rng.randint(1, MOST_KILLS)):
        was_sent, problem = _kill_once(command, trial, rng)
        sent += was_sent
        if problem:
            return [Outcome("kills", command.name, problem, sent, evidence=trial.folder)]
    return [finish(command, trial, "kills", sent)]


def finish(command: Command, trial: Trial, scenario: str, kills: int = 0) -> Outcome:
    """Run a command to its end, undisturbed: it must leave what an undisturbed run leaves."""
    ended = command.start(trial.inputs, trial.folder).wait(PATIENCE)
    problem = complaint(ended, command.allowed(0, 1)) or compare(command, trial)
    return Outcome(scenario, command.name, problem, kills, evidence=trial.folder)


def compare(command: Command, trial: Trial, but: Sequence[str] = ()) -> str | None:
    """Name what differs from an undisturbed run, bit for bit but for dates, durations and files that are named."""
    results = trial.folder / RESULTS
    if temporary := leftovers(results):
        return f"temporary files stay: {', '.join(temporary[:3])}"
    expected = trial.reference(command).content
    compared = {name: content for name, content in expected.items() if Path(name).name not in but}
    return difference(canonical(results), compared)


def _kill_once(command: Command, trial: Trial, rng: random.Random) -> tuple[bool, str | None]:
    """Send a signal after some time, or at the moment at which a file is renamed."""
    number = rng.choice(SIGNALS)
    if rng.random() < AT_WRITE_SHARE:
        return kill_at_write(command, trial, number, rng.randint(1, MOST_WRITES))
    cold = command.is_plain and rng.random() < COLD_SHARE
    longest = trial.reference(command).seconds * 1.1 + cold * IMPORT_SECONDS
    delay = rng.uniform(0, longest)
    child = command.start_cold(trial.inputs, trial.folder) if cold else command.start(trial.inputs, trial.folder)
    interruption = interrupt(child, number, delay)
    _keep_output(trial.folder, f"{number.name} after {delay:.2f} s" + " (new interpreter)" * cold, interruption.ended)
    return interruption.was_sent, interruption.problem(number, delay, command.allowed(*STOPPED))


def kill_at_write(command: Command, trial: Trial, number: signal.Signals, write: int) -> tuple[bool, str | None]:
    """Let a command send itself a signal just before its n-th file is renamed, at any pace of the machine."""
    sent = trial.folder / "sent"
    sent.unlink(missing_ok=True)

    def prepare() -> None:
        command.prepare()
        writes = count(1)

        def watch(event: str, _arguments: tuple[object, ...]) -> None:
            if event == "os.rename" and next(writes) == write:
                sent.touch()
                os.kill(os.getpid(), number)

        sys.addaudithook(watch)

    ended = replace(command, prepare=prepare).start(trial.inputs, trial.folder).wait(PATIENCE)
    _keep_output(trial.folder, f"{number.name} at file {write}", ended)
    problem = None if number == signal.SIGKILL else complaint(ended, command.allowed(*STOPPED))
    return sent.exists(), f"{number.name} at file {write}: {problem}" if problem else None


def interrupt(child: Child, number: signal.Signals, delay: float) -> Interruption:
    """Send a signal after a delay, unless the child has ended; wait for the end."""
    ended = child.ended_within(delay)
    if ended is not None:
        return Interruption(child.report(*ended), was_sent=False, could_handle=True)
    could_handle = handles_signals(child.pid)
    child.send(number)
    return Interruption(child.wait(PATIENCE), was_sent=True, could_handle=could_handle)


def handles_signals(pid: int) -> bool:
    """Whether a process catches or ignores SIGTERM: recollect sees to it in its first lines, after SIGINT."""
    bit = 1 << (signal.SIGTERM - 1)
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return any(int(line.split()[1], 16) & bit for line in lines if line.startswith(("SigCgt:", "SigIgn:")))


def _keep_output(folder: Path, title: str, ended: Ended) -> None:
    with (folder / "kills.txt").open("a") as file:
        file.write(f"{time.strftime('%X')} {title}: exit code {ended.code}\n{ended.err}\n")
