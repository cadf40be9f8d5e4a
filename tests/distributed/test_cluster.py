import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from recollect import InputError
from recollect.distributed import cluster as connecting
from recollect.distributed.cluster import WorkerResources
from tests.cli.running import mistake


def test_where_ray_is_missing_one_line_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ray'] = None; from recollect.cli.entry import main; main()"
    command = [sys.executable, "-W", "error", "-c", code, "paper", "run", "psnr", "--on", "ray"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "recollect: Ray is not installed; pip install 'recollect[ray]' installs it.\n"


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "127.0.0.1:1", "no.such.host.invalid:10001"])
def test_where_nobody_answers_it_is_told(address: str) -> None:
    assert f"Nobody answers at {address}" in mistake("paper", "run", "psnr", "--on", address)


@pytest.mark.parametrize("greeting", [b"", b"220 a mail server\r\n"])
@pytest.mark.parametrize("scheme", ["ray://", ""])
def test_where_something_else_listens_it_is_told_soon(
    scheme: str, greeting: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_greet, args=(server, greeting))
        answering.start()
        address = f"{scheme}127.0.0.1:{server.getsockname()[1]}"
        assert f"What listens at {address} is no Ray cluster" in mistake("paper", "run", "psnr", "--on", address)
        answering.join()


def _greet(server: socket.socket, greeting: bytes) -> None:
    caller, _ = server.accept()
    with caller, suppress(ConnectionResetError):
        caller.sendall(greeting)
        while caller.recv(100):  # until it hangs up
            pass


def test_what_a_worker_can_be_given() -> None:
    assert str(WorkerResources(2, 0.5)) == "2 CPUs and 0.5 GPUs"
    for cpus, gpus in ((0, 0), (-1, 1), (1, 1.5)):
        with pytest.raises(InputError):
            WorkerResources(cpus, gpus)
