"""Draw scenarios at random until the time is up, two at a time; keep what failed, and go on."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
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
from tests.torture.trial import Scenario, Trial
from tests.torture.warm import import_everything

WORKERS = 2
SCENARIOS: dict[str, Scenario] = {
    "kills": kills.run, "ray": ray_kills.run, "files": files.run, "records": records.run, "faults": faults.run,
}  # fmt: skip
WEIGHTS = {"kills": 25, "ray": 2, "files": 45, "records": 15, "faults": 13}  # how often each is drawn
PREPARING = 600  # seconds for valid files and inputs


@dataclass(frozen=True)
class Draw:
    """A scenario and the seed of its random numbers: all that a trial depends on but the clock."""

    scenario: str
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario}:{self.seed}"


SAMPLE_SEED = 5
SAMPLE = [Draw("kills", 17), Draw("records", 4), Draw("faults", 5), Draw("faults", 7)]


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
        self._try(draws(seed, self.scenarios), minutes)

    def again(self, draw: Draw) -> None:
        """Repeat one trial."""
        self._try(iter([draw]), minutes=1)

    def _try(self, source: Iterator[Draw], minutes: float) -> None:
        running: dict[Any, Any] = {}
        pool = _pool()
        try:
            pool.submit(prepare, self.out / "shared").result()
            until = time.monotonic() + 60 * minutes
            while True:
                while len(running) < WORKERS and time.monotonic() < until and (draw := next(source, None)):
                    running[pool.submit(try_one, draw, self.out)] = draw
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._note(running.pop(future), future)
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


def draws(seed: int, scenarios: Sequence[str]) -> Iterator[Draw]:
    """Draw scenarios for ever."""
    rng = random.Random(seed)
    while True:
        yield Draw(rng.choices(scenarios, [WEIGHTS[name] for name in scenarios])[0], rng.randrange(2**32))


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
    """Try a few files of every format and a few disturbances of a training, always the same ones."""
    import_everything()
    prepare(out / "shared", ["train"])
    outcomes = []
    for form in FORMATS.values():
        trial = Trial(SAMPLE_SEED, out / "files" / form.name, out / "shared")
        outcomes += files.try_format(form, trial, mutated=2, built=1, hostile=1)
    for draw in SAMPLE:
        outcomes += try_one(draw, out)
    return outcomes


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
