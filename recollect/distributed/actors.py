"""A crew: actors that do tasks. One that is lost gives its task back; only this process keeps what they find."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from recollect.distributed.jobs import Budget, Folder, Job, Shared, Task, Tell
from recollect.distributed.worker import Files, Worker
from recollect.errors import InputError
from recollect.version import __version__

if TYPE_CHECKING:
    from recollect.distributed.cluster import Each

TRIES = 4  # of a task whose workers are lost: one that takes too much memory would go on losing them
OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
ROUNDING = 1e-6  # in what Ray counts in parts: 0.3 CPUs are three times 0.1
SOON = 20.0  # seconds after which it is looked again for new machines, and for time that is over


class Crew:
    """A runner of sweeps. Workers live as long as the crew, so what they hold is loaded once and not once a task."""

    def __init__(self, ray: Any, each: Each, device: str) -> None:
        self.ray, self.each, self.device = ray, each, device
        self._hire = ray.remote(num_cpus=each.cpus, num_gpus=each.gpus, max_restarts=-1)(Worker)
        self._workers: list[Any] = []
        self._idle: deque[Any] = deque()
        self._coming: dict[Any, Any] = {}  # workers that start, or start again, by the answer they will give
        self._put: WeakKeyDictionary[Shared[Any], Any] = WeakKeyDictionary()

    def __enter__(self) -> Crew:
        if not self._room():
            has = "; ".join(sorted({str(machine) for machine in self._machines()})) or "there is none"
            raise InputError(f"No machine of this Ray cluster has {self.each} for a worker: {has}.")
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self.ray.kill(worker)

    def __len__(self) -> int:
        return self._room()

    def __call__(self, jobs: Iterable[Job], budget: Budget, tell: Tell) -> bool:
        """The tasks of all jobs, as many at once as there are workers; whether all were done."""
        self.ask_again()
        return _Sweep(self, jobs, budget, tell).run()

    def next_worker(self) -> Any | None:
        """One that has nothing to do; as many are hired as the cluster has room for, also when it grows."""
        while len(self._workers) < self._room():
            worker = self._hire.remote(max(1, int(self.each.cpus)), __version__)
            self._workers.append(worker)
            self.expect(worker)
        return self._idle.popleft() if self._idle else None

    def expect(self, worker: Any) -> None:
        """Ray starts a lost worker again where there is room for it; until it answers it is given nothing."""
        self._coming[worker.ready.options(max_task_retries=-1).remote()] = worker

    def ask_again(self) -> None:
        """After a pause or a loss: who was lost while idle, or after it answered, would lose the next task too."""
        waiting = [*self._idle, *self._coming.values()]
        self._idle.clear()
        self._coming.clear()
        for worker in waiting:
            self.expect(worker)

    def free(self, worker: Any) -> None:
        self._idle.append(worker)

    def hand(self, task: Task, worker: Any) -> Any:
        return worker.do.remote(task.do, [self._sent(given) for given in task.inputs])

    def wait(self, working: Iterable[Any]) -> list[Any]:
        """Answers that have come; workers that have started are taken care of here."""
        ready, _ = self.ray.wait([*working, *self._coming], timeout=SOON)
        for answer in [r for r in ready if r in self._coming]:
            self._welcome(answer)
        return [r for r in ready if r in set(working)]

    def _welcome(self, answer: Any) -> None:
        from ray import exceptions

        worker = self._coming.pop(answer)
        try:
            self.ray.get(answer)
        except exceptions.RayError as error:  # one that is lost starts again, so this one never can
            raise InputError(f"A worker could not start on this Ray cluster: {_last_line(error)}") from None
        self.free(worker)

    def _sent(self, given: Any) -> Any:
        if isinstance(given, Folder):
            return Files.of(given.here)
        if not isinstance(given, Shared):
            return given
        if given not in self._put:
            self._put[given] = self.ray.put(given.make())  # let go when no task needs it any more
        return self._put[given]

    def _room(self) -> int:
        """A worker does not spread over machines, so each is counted by itself."""
        needs = [(name, need) for name, need in (("CPU", self.each.cpus), ("GPU", self.each.gpus)) if need]
        return sum(min(int(has.get(name, 0) / need + ROUNDING) for name, need in needs) for has in self._machines())

    def _machines(self) -> list[dict[str, float]]:
        """What each has in all, also what is in use."""
        alive = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return [{name: has[name] for name in ("CPU", "GPU") if name in has} for has in alive]


def _last_line(error: Exception) -> str:
    """Where Ray passes on a traceback, the line that says what was wrong."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()


class _Sweep:
    """One call of a crew: who does what, and which jobs can give another task."""

    def __init__(self, crew: Crew, jobs: Iterable[Job], budget: Budget, tell: Tell) -> None:
        self.crew, self.budget, self.tell = crew, budget, tell
        self.open: deque[Iterator[Task]] = deque(job(budget) for job in jobs)
        self.again: deque[tuple[Task, Iterator[Task]]] = deque()
        self.working: dict[Any, tuple[Task, Iterator[Task], Any]] = {}
        self.lost: Counter[Task] = Counter()
        self.failed = False

    def run(self) -> bool:
        while True:
            self._hand_out()
            left = bool(self.open or self.again)
            if not self.working and not (left and self.budget.left):
                return not left and not self.failed
            for answer in self.crew.wait(list(self.working)):
                self._take(answer, *self.working.pop(answer))

    def _hand_out(self) -> None:
        while self.budget.left and (self.open or self.again) and (worker := self.crew.next_worker()):
            found = self.again.popleft() if self.again else self._next()
            if found is None:
                self.crew.free(worker)
                return
            task, job = found
            self.working[self.crew.hand(task, worker)] = task, job, worker

    def _next(self) -> tuple[Task, Iterator[Task]] | None:
        while self.open:
            job = self.open[0]
            if (task := next(job, None)) is None:
                self.open.popleft()
                continue
            if task.first:
                self.open.popleft()  # it comes back when this task is kept
            return task, job
        return None

    def _take(self, answer: Any, task: Task, job: Iterator[Task], worker: Any) -> None:
        from ray import exceptions

        try:
            found, files = self.crew.ray.get(answer)
        except exceptions.RayTaskError as error:
            self.crew.free(worker)
            if isinstance(error.cause, OUT_OF_MEMORY):  # of others beside it, perhaps
                self._lose(task, job, repr(error.cause))
            else:  # the task itself raised: it would do so again
                self._fail(task, str(error.cause))
        except exceptions.RayError as error:  # its worker or its machine is gone, or their memory was not enough
            self.crew.free(worker)
            self.crew.ask_again()  # others may have been lost with it
            self._lose(task, job, str(error))
        else:
            self.crew.free(worker)
            for folder, content in zip((i for i in task.inputs if isinstance(i, Folder)), files, strict=True):
                content.write(folder.here)
            self.tell(task.keep(found))
            if task.first:
                self.open.appendleft(job)

    def _lose(self, task: Task, job: Iterator[Task], reason: str) -> None:
        self.lost[task] += 1
        if self.lost[task] == TRIES:
            return self._fail(task, f"lost {TRIES} times: {reason}")
        self.again.append((task, job))
        self.tell(f"{task.name}: lost with its worker, to be done again ({reason.strip().splitlines()[0]})")

    def _fail(self, task: Task, reason: str) -> None:
        self.failed = True
        self.tell(f"{task.name}: failed: {(reason.strip().splitlines() or ['no reason was given'])[0]}")
