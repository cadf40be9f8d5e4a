"""Python in a process of its own, forked from one that has imported the libraries: a new interpreter takes seconds.

Exit codes, signals and output are those of any process, and no module of recollect has been imported. Where the start
of the interpreter itself is tested, use `subprocess`.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LIBRARIES = [
    "torch", "torch._dynamo", "numpy", "pandas", "scipy.special", "typer", "pydantic", "rich.progress", "PIL.Image",
    "jinja2", "safetensors.torch",
]  # fmt: skip
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(LIBRARIES)
RECOLLECT = "import runpy; runpy.run_module('recollect', run_name='__main__', alter_sys=True)"


class Ended(NamedTuple):
    code: int  # or minus the signal that ended it
    out: str
    err: str


def main(
    code: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], streams: Sequence[str]
) -> None:
    """Run code as an interpreter would that is started with these arguments in this folder."""
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with it ignored
    os.chdir(folder)
    os.environ.update(variables)
    sys.path.insert(0, str(folder))
    sys.argv = ["-c", *arguments]
    warnings.simplefilter("error")
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


class WarmProcess:
    """A running process whose output is read at its end, unless other files are given for its standard streams."""

    def __init__(
        self, code: str, *arguments: str, folder: Path | None = None, streams: Sequence[str] = (), **variables: str
    ) -> None:
        self._outputs = tempfile.TemporaryDirectory()
        self._files = [Path(self._outputs.name) / name for name in ("stdout", "stderr")]
        streams = streams or (os.devnull, *map(str, self._files))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        given = code, arguments, folder or Path.cwd(), environment, streams
        self._process = SERVER.Process(target=main, args=given)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def end(self) -> Ended:
        """Wait for the end."""
        self._process.join()
        assert self._process.exitcode is not None
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        self._outputs.cleanup()
        return Ended(self._process.exitcode, out, err)


def run(code: str, *arguments: str, folder: Path | None = None, **variables: str) -> Ended:
    """Run code to its end."""
    return WarmProcess(code, *arguments, folder=folder, **variables).end()
