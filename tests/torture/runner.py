"""Draw scenarios at random until the time is up, two at a time; keep what failed, and go on."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from recollect.records import plain, write_json
from tests.torture import faults, files, kills, ray_kills, records
from tests.torture.children import fork
from tests.torture.commands import COMMANDS, write_inputs, write_reference
from tests.torture.formats import FORMATS, write_valid_files
from tests.torture.hostile import write_hostile_files
from tests.torture.outcome import Outcome
from tests.torture.preload import import_everything
from tests.torture.trial import Scenario, Trial

WORKERS = 2
SCENARIOS: dict[str, Scenario] = {
    "kills": kills.run, "ray": ray_kills.run, "files": files.run, "records": records.run, "faults": faults.run,
}  # fmt: skip
SHARES = {"kills": 30, "ray": 25, "files": 15, "records": 15, "faults": 15}  # of the time
ALONE = {"ray"}  # the machine has memory for one cluster
PREPARING = 600  # seconds for valid files and inputs


@dataclass(frozen=True)
class Draw:
    """A scenario and the seed of its random numbers: all that a trial depends on but the clock."""

    scenario: str
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario}:{self.seed}"


SAMPLE_SEED = 5
SAMPLE_COMMAND, SAMPLE_WRITE = "audit of canaries", 4  # the file at whose writing it is killed
SAMPLE = [Draw("records", 4), Draw("faults", 5), Draw("faults", 7)]


@dataclass
class Run:
    """A run of the harness in a folder."""

    out: Path
    log: Callable[[str], None]
    scenarios: Sequence[str] = tuple(SCENARIOS)
    outcomes: list[Outcome] = field(default_factory=list)
    failures: int = 0

    def for_minutes(self, minutes: float, seed: int) -> None:
        """Draw trials until the time is up."""
        self._try(Draws(seed, self.scenarios), minutes)

    def again(self, draw: Draw) -> None:
        """Repeat one trial."""
        draws = Draws(0, [draw.scenario])
        draws.given = [draw]
        self._try(draws, minutes=1)

    def _try(self, draws: Draws, minutes: float) -> None:
        running: dict[Future[list[Outcome]], tuple[Draw, float]] = {}
        pool = _pool()
        try:
            pool.submit(prepare, self.out / "shared").result()
            until = time.monotonic() + 60 * minutes
            while True:
                while len(running) < WORKERS and time.monotonic() < until:
                    if (draw := draws.next([draw.scenario for draw, _ in running.values()])) is None:
                        break
                    running[pool.submit(try_one, draw, self.out)] = draw, time.monotonic()
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    draw, began = running.pop(future)
                    draws.spent[draw.scenario] += time.monotonic() - began
                    self._note(draw, future)
        except BrokenProcessPool:
            self._add(Draw("harness", 0), Outcome("harness", "worker", "a worker process ended"))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _note(self, draw: Draw, future: Future[list[Outcome]]) -> None:
        for outcome in future.result():
            self._add(draw, outcome)

    def _add(self, draw: Draw, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.problem:
            self.failures += 1
            self.log(f"FAILED {draw} {outcome.subject}: {outcome.problem}")


class Draws:
    """Draw the scenario that has had the least of its share of the time; the seeds of each do not depend on time."""

    def __init__(self, seed: int, scenarios: Sequence[str]) -> None:
        self.seeds = {name: random.Random(f"{seed} {name}") for name in scenarios}
        self.spent = dict.fromkeys(scenarios, 0.0)  # seconds
        self.given: list[Draw] | None = None  # what is drawn instead

    def next(self, running: Sequence[str]) -> Draw | None:
        """Draw a trial to run beside others; None if there is none."""
        if self.given is not None:
            return self.given.pop() if self.given else None
        free = [name for name in self.spent if name not in running or name not in ALONE]
        if not free:
            return None
        scenario = min(free, key=lambda name: (self.spent[name] / SHARES[name], running.count(name)))
        return Draw(scenario, self.seeds[scenario].randrange(2**32))


def try_one(draw: Draw, out: Path) -> list[Outcome]:
    """Try one draw in a folder of its own; what failed is kept with its seed, inputs and output."""
    folder = out / "work" / str(draw).replace(":", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        outcomes = SCENARIOS[draw.scenario](Trial(draw.seed, folder, out / "shared"))
    except Exception:
        outcomes = [Outcome("harness", draw.scenario, traceback.format_exc(), evidence=folder)]
    for number, outcome in enumerate(outcomes):
        if outcome.problem:
            _keep(draw, outcome, out / "failures" / f"{folder.name}-{number}")
    shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def _keep(draw: Draw, outcome: Outcome, folder: Path) -> None:
    facts: dict[str, Any] = {"repeat": f"python -m tests.torture --repeat {draw}", **asdict(outcome)}
    if outcome.evidence and outcome.evidence.is_dir():
        shutil.copytree(outcome.evidence, folder, symlinks=True, dirs_exist_ok=True)
    write_json(folder / "failure.json", plain({name: str(value) for name, value in facts.items()}))


def sample(out: Path) -> list[Outcome]:
    """Try a few files of every format and a few disturbances of an audit, always the same ones."""
    import_everything()
    prepare(out / "shared", [SAMPLE_COMMAND])
    outcomes = []
    for form in FORMATS.values():
        trial = Trial(SAMPLE_SEED, out / "files" / form.name, out / "shared")
        outcomes += files.try_format(form, trial, mutated=2, built=1, hostile=1)
    outcomes.append(_killed_and_resumed(Trial(SAMPLE_SEED, out / "killed", out / "shared")))
    for draw in SAMPLE:
        outcomes += try_one(draw, out)
    return outcomes


def _killed_and_resumed(trial: Trial) -> Outcome:
    command = COMMANDS[SAMPLE_COMMAND]
    trial.folder.mkdir()
    was_killed, _ = kills.kill_at_write(command, trial, signal.SIGKILL, SAMPLE_WRITE)
    return kills.finish(command, trial, "kills", int(was_killed))


def prepare(shared: Path, commands: Sequence[str] = tuple(COMMANDS)) -> None:
    """Write inputs, valid files and what each command leaves undisturbed, in processes of their own."""
    if (shared / "prepared").exists():
        return
    shutil.rmtree(shared, ignore_errors=True)
    for name, write in (("inputs", write_inputs), ("files", write_valid_files), ("hostile", write_hostile_files)):
        ended = fork(partial(write, shared / name), shared / "making" / name).wait(PREPARING)
        if ended.code:
            raise RuntimeError(f"The {name} cannot be made: {ended.err}")
    for command in map(COMMANDS.__getitem__, commands):
        write_reference(command, shared / "inputs", shared / "references" / command.name)
    (shared / "prepared").touch()


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Ready a worker: an interruption of the harness is the runner's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_everything()
