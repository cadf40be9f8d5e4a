"""Ray actors that run tasks. A task whose worker is lost runs again; only this process keeps results."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from recollect.distributed.jobs import Budget, Folder, Job, Log, Shared, Task
from recollect.distributed.worker import Files, Worker
from recollect.errors import InputError, last_line
from recollect.version import __version__

if TYPE_CHECKING:
    from recollect.distributed.cluster import WorkerResources

# Ray's max_task_retries sends a lost task to the same actor, and these tries to any idle worker. Measured after a
# machine was removed: three retries of Ray's failed within 5 s, and endless ones had not ended after 90 s.
TRIES = 4  # of one task: one that needs too much memory loses every worker
OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
ROUNDING = 1e-6  # Ray counts parts of a CPU: 0.3 CPUs are three times 0.1
POLL_SECONDS = 20.0  # between checks for new machines and of the time limit


class WorkerPool:
    """Run jobs on workers that live as long as the pool, so that shared inputs are loaded once a worker."""

    def __init__(self, ray: Any, resources: WorkerResources, device: str) -> None:
        self.ray, self.resources, self.device = ray, resources, device
        self._actor = ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_restarts=-1)(Worker)
        self._workers: list[Any] = []
        self._idle: deque[Any] = deque()
        self._starting: dict[Any, Any] = {}  # workers that start or restart, by the reference to their answer
        self._references: WeakKeyDictionary[Shared[Any], Any] = WeakKeyDictionary()

    def __enter__(self) -> WorkerPool:
        if not self._capacity():
            available = "; ".join(sorted({str(machine) for machine in self._machines()})) or "there is none"
            raise InputError(f"No machine of this Ray cluster has {self.resources} for a worker: {available}.")
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self.ray.kill(worker)

    def __len__(self) -> int:
        return self._capacity()

    def __call__(self, jobs: Iterable[Job], budget: Budget, log: Log) -> bool:
        """Run the tasks of all jobs, one a worker at a time; return whether all were done."""
        self.check_idle()
        return _Run(self, jobs, budget, log).run()

    def idle_worker(self) -> Any | None:
        """Return a worker that has started and is idle; start as many as the cluster has room for."""
        while len(self._workers) < self._capacity():
            worker = self._actor.remote(max(1, int(self.resources.cpus)), __version__)
            self._workers.append(worker)
            self._await_start(worker)
        if not self._idle:
            return None
        return self._idle.popleft()

    def check_idle(self) -> None:
        """Ask idle workers whether they still run; one that was lost while idle would lose the next task too."""
        waiting = [*self._idle, *self._starting.values()]
        self._idle.clear()
        self._starting.clear()
        for worker in waiting:
            self._await_start(worker)

    def release(self, worker: Any) -> None:
        """Mark a worker as idle."""
        self._idle.append(worker)

    def submit(self, task: Task, worker: Any) -> Any:
        """Send a task to a worker; return the reference to its answer."""
        return worker.run.remote(task.function, [self._sendable(given) for given in task.inputs])

    def wait(self, running: Iterable[Any]) -> list[Any]:
        """Wait for answers, and admit workers that have started meanwhile."""
        ready, _ = self.ray.wait([*running, *self._starting], timeout=POLL_SECONDS)
        for reference in [r for r in ready if r in self._starting]:
            self._admit(reference)
        return [r for r in ready if r in set(running)]

    def _await_start(self, worker: Any) -> None:
        """Send no task to a worker before it answers; Ray restarts a lost one where there is room."""
        self._starting[worker.ready.options(max_task_retries=-1).remote()] = worker

    def _admit(self, reference: Any) -> None:
        from ray import exceptions

        worker = self._starting.pop(reference)
        try:
            self.ray.get(reference)
        except exceptions.RayError as error:  # Ray restarts workers that were lost, so this one can never start
            raise InputError(f"A worker could not start on this Ray cluster: {last_line(error)}") from None
        self.release(worker)

    def _sendable(self, given: Any) -> Any:
        if isinstance(given, Folder):
            return Files.of(given.path)
        if not isinstance(given, Shared):
            return given
        if given not in self._references:
            self._references[given] = self.ray.put(given.make())  # dropped with the last task that needs it
        return self._references[given]

    def _capacity(self) -> int:
        """Count the workers that fit; each machine by itself, since a worker cannot use two."""
        needs = {"CPU": self.resources.cpus, "GPU": self.resources.gpus}
        return sum(_fitting(machine, needs) for machine in self._machines())

    def _machines(self) -> list[dict[str, float]]:
        """List the CPUs and GPUs of each machine, those in use too."""
        alive = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return [{name: resources[name] for name in ("CPU", "GPU") if name in resources} for resources in alive]


def _fitting(machine: dict[str, float], needs: dict[str, float]) -> int:
    return min(int(machine.get(name, 0) / need + ROUNDING) for name, need in needs.items() if need)


class _Run:
    """One call of a pool: which worker runs which task, and which jobs have further tasks."""

    def __init__(self, pool: WorkerPool, jobs: Iterable[Job], budget: Budget, log: Log) -> None:
        self.pool, self.budget, self.log = pool, budget, log
        self.jobs: deque[Iterator[Task]] = deque(job(budget) for job in jobs)
        self.lost: deque[tuple[Task, Iterator[Task]]] = deque()
        self.running: dict[Any, tuple[Task, Iterator[Task], Any]] = {}
        self.losses: Counter[Task] = Counter()
        self.failed = False

    def run(self) -> bool:
        while True:
            self._submit_all()
            left = bool(self.jobs or self.lost)
            if not self.running and not (left and self.budget.left):
                return not left and not self.failed
            for reference in self.pool.wait(list(self.running)):
                self._finish(reference, *self.running.pop(reference))

    def _submit_all(self) -> None:
        while self.budget.left and (self.jobs or self.lost) and (worker := self.pool.idle_worker()):
            following = self.lost.popleft() if self.lost else self._next_task()
            if following is None:
                self.pool.release(worker)
                return
            task, job = following
            self.running[self.pool.submit(task, worker)] = task, job, worker

    def _next_task(self) -> tuple[Task, Iterator[Task]] | None:
        while self.jobs:
            job = self.jobs[0]
            if (task := next(job, None)) is None:
                self.jobs.popleft()
                continue
            if task.first:
                self.jobs.popleft()  # put back when this task's result is kept
            return task, job
        return None

    def _finish(self, reference: Any, task: Task, job: Iterator[Task], worker: Any) -> None:
        from ray import exceptions

        self.pool.release(worker)
        try:
            result, files = self.pool.ray.get(reference)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, OUT_OF_MEMORY):  # other tasks on that machine may have taken the memory
                self._retry(task, job, repr(error.cause))
            else:  # the task itself raised, and would again
                self._fail(task, str(error.cause))
        except exceptions.RayError as error:  # the worker or its machine was lost
            self.pool.check_idle()  # others may be lost with it
            self._retry(task, job, str(error))
        else:
            self._keep(task, job, result, files)

    def _keep(self, task: Task, job: Iterator[Task], result: Any, files: list[Files]) -> None:
        folders = [given for given in task.inputs if isinstance(given, Folder)]
        for folder, content in zip(folders, files, strict=True):
            content.write(folder.path)
        self.log(task.keep(result))
        if task.first:
            self.jobs.appendleft(job)

    def _retry(self, task: Task, job: Iterator[Task], reason: str) -> None:
        self.losses[task] += 1
        if self.losses[task] == TRIES:
            return self._fail(task, f"lost {TRIES} times: {reason}")
        self.lost.append((task, job))
        self.log(f"{task.name}: lost with its worker and will run again ({reason.strip().splitlines()[0]})")

    def _fail(self, task: Task, reason: str) -> None:
        self.failed = True
        self.log(f"{task.name}: failed: {(reason.strip().splitlines() or ['no reason was given'])[0]}")
