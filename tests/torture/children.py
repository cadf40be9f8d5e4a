"""Run a task in a process of its own, under limits, and say how it ended.

A child is forked from a process that has imported everything, which saves seconds a start. `start_cold` starts a new
interpreter where the start itself is tested.
"""

from __future__ import annotations

import io
import os
import resource
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recollect.cli import signals

ROOT = Path(__file__).parents[2]
MEGABYTE = 1024**2
POLL = 0.005  # seconds
STALLED = 180.0  # seconds without any CPU time after which a child stands still
LONGEST = 10  # times the CPU seconds that a child may have, in seconds of the clock
UNCAUGHT = 70  # exit code of a task that raised


@dataclass(frozen=True)
class Limits:
    """What a child may use beyond what it has when it starts; None is no limit."""

    memory: int | None = None  # bytes of address space
    cpu_seconds: int | None = None
    file_bytes: int | None = None

    def apply(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.memory is not None:
            most = _own("VmSize") + self.memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if self.cpu_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds + 1))
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, self.file_bytes))


@dataclass(frozen=True)
class Ended:
    """How a child ended and what it took."""

    code: int  # exit code, or minus the signal that ended it
    out: str
    err: str
    cpu_seconds: float = 0.0
    megabytes: float = 0.0  # at the peak, beyond what it started with
    hung: bool = False

    @property
    def has_traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.err + self.out

    @property
    def sentences(self) -> list[str]:
        """The lines in which recollect says why it stopped."""
        return [line for line in self.err.splitlines() if line.startswith("recollect: ")]


@dataclass
class Child:
    """A running process that leads a group of its own."""

    pid: int
    folder: Path  # holds stdout and stderr
    began: float = field(default_factory=time.monotonic)
    base_bytes: int = 0

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def end_group(self) -> None:
        """Kill what is left of the processes that this child started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; one that has is waited for later."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def ended_within(self, seconds: float) -> tuple[int, resource.struct_rusage] | None:
        until = time.monotonic() + seconds
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status), usage
            if time.monotonic() > until:
                return None
            time.sleep(POLL)

    def wait(self, seconds: float) -> Ended:
        """Wait for the end; a child that computes for longer, or stands still, is killed and called hung.

        A busy machine makes neither happen: the seconds are CPU time.
        """
        hung, ended, moved, computed = False, None, time.monotonic(), -1.0
        while ended is None and not hung:
            ended = self.ended_within(min(seconds, 1.0))
            now = _cpu_seconds(self.pid)
            if now > computed:
                moved, computed = time.monotonic(), now
            stalled = time.monotonic() - moved > STALLED
            hung = ended is None and (computed > seconds or stalled or self._age > LONGEST * seconds)
        if ended is None:
            os.kill(self.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self.pid, 0)
            ended = os.waitstatus_to_exitcode(status), usage
        return self.report(*ended, hung=hung)

    @property
    def _age(self) -> float:
        return time.monotonic() - self.began

    def report(self, code: int, usage: resource.struct_rusage, hung: bool = False) -> Ended:
        peak = max(0, usage.ru_maxrss * 1024 - self.base_bytes) / MEGABYTE
        texts = [_text(self.folder / name) for name in ("stdout", "stderr")]
        return Ended(code, texts[0], texts[1], usage.ru_utime + usage.ru_stime, peak, hung)


def fork(task: Callable[[], object], folder: Path, limits: Limits | None = None, stdout: Path | None = None) -> Child:
    """Run a task in a forked child whose working folder is `folder`; on return the task is about to begin."""
    folder.mkdir(parents=True, exist_ok=True)
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        os.close(read)
        _become_child(task, folder, limits or Limits(), stdout or folder / "stdout", write)
    os.close(write)
    with os.fdopen(read, "rb") as ready:
        base = int(ready.read() or 0)
    return Child(pid, folder, base_bytes=base)


def start_cold(arguments: Sequence[str], folder: Path) -> Child:
    """Start the command line in a new interpreter."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect", *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
    process.returncode = 0  # this module waits for it: Popen must not
    return Child(process.pid, folder)


def recollect(arguments: Sequence[str]) -> Callable[[], None]:
    """The command line as a task."""

    def task() -> None:
        sys.argv = ["recollect", *arguments]
        runpy.run_module("recollect", run_name="__main__", alter_sys=True)

    return task


def _become_child(task: Callable[[], object], folder: Path, limits: Limits, stdout: Path, ready: int) -> None:
    """Never return: run the task and leave the process without the parent's clean-up."""
    code = UNCAUGHT
    try:
        os.setsid()
        os.chdir(folder)
        _redirect(stdout, folder / "stderr")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signals.exit_at_once()  # a forked child begins where the first lines of recollect have run
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory counts from here
        os.write(ready, str(_own("VmRSS")).encode())
        os.close(ready)
        limits.apply()
        code = _exit_code(task)
    finally:
        os._exit(code)


def _exit_code(task: Callable[[], object]) -> int:
    """Run the task as an interpreter would run a program."""
    try:
        task()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = UNCAUGHT
    try:
        sys.stdout.flush()
    except OSError:
        code = 120  # as an interpreter does
    sys.stderr.flush()
    return code


def _redirect(stdout: Path, stderr: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in ((1, stdout), (2, stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", line_buffering=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)


def _own(name: str) -> int:
    """Read a size of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    """Read the CPU time of a process; zero if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
