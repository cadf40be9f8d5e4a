import hashlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.errors import InputError
from recollect.sources import SOURCES, Archive
from recollect.sources.download import download, fetch, is_fetched

pytest.importorskip("pooch")
CONTENT = bytes(range(256)) * 4096  # one MiB
RIGHT = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    asked: list[str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """What is asked for decides how the answer goes wrong."""

    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if "missing" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        if "endless" in self.path:
            self.end_headers()
            with suppress(OSError):  # until the other side closes the connection
                while True:
                    self.wfile.write(CONTENT)
            return
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if "truncated" in self.path:
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
        elif "changed" in self.path:
            self.wfile.write(CONTENT[:-1] + b"!")
        else:
            self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def archive(server: Server, name: str = "good.bin", md5: str = RIGHT) -> Archive:
    return Archive(f"{server.address}/{name}", md5, f"sub/{name}", 1)


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_a_file_is_downloaded_checked_and_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    path = download(archive(server), tmp_path)
    assert path == tmp_path / "sub" / "good.bin"
    assert path.read_bytes() == CONTENT
    assert download(archive(server), tmp_path) == path
    assert server.asked == ["/good.bin"]
    assert left(tmp_path) == ["good.bin"]


def test_progress_goes_up_to_the_whole(server: Server, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    download(archive(server), tmp_path, progress=lambda done, total: reported.append((done, total)))
    assert len(reported) >= 4
    assert reported == sorted(reported)
    assert reported[-1] == (len(CONTENT), len(CONTENT))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("changed.bin", "is not the official file: its md5 is not"),
        ("truncated.bin", "could not be downloaded whole"),
        ("missing.bin", "answered 404 Not Found"),
        ("endless.bin", "sent more than 4,000,000 bytes"),
    ],
)
def test_what_goes_wrong_is_said_and_nothing_is_left(server: Server, tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        download(archive(server, name), tmp_path)
    assert f"{server.address}/{name}" in str(error.value)
    assert left(tmp_path) == []


def test_a_server_that_is_gone_is_said(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = archive(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match=r"could not be downloaded whole: .*refused"):
        download(gone, tmp_path)
    assert left(tmp_path) == []


def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/good.bin"
        with pytest.raises(InputError, match=r"could not be downloaded whole: .*timed out"):
            download(Archive(url, RIGHT, "good.bin", 1), tmp_path, timeout=0.2)
    assert left(tmp_path) == []


def test_a_damaged_file_in_the_cache_is_replaced_only_by_a_good_one(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "sub" / "good.bin"
    target.parent.mkdir()
    target.write_bytes(b"half")
    assert download(archive(server), tmp_path).read_bytes() == CONTENT
    target.write_bytes(b"mine")
    with pytest.raises(InputError, match="not the official file"):
        download(archive(server, md5="0" * 32), tmp_path)
    assert target.read_bytes() == b"mine"
    assert left(tmp_path) == ["good.bin"]


def test_a_folder_that_cannot_be_written_is_said(server: Server, tmp_path: Path) -> None:
    (tmp_path / "sub").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot be written: .*Choose another --cache"):
        download(archive(server), tmp_path)


def test_a_set_is_fetched_whole_into_the_folder_of_the_variable(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    pair = replace(SOURCES["svhn"], archives=(archive(server, "one"), archive(server, "two")))
    assert not is_fetched(pair)
    assert fetch(pair) == [tmp_path / "sub" / "one", tmp_path / "sub" / "two"]
    assert is_fetched(pair)
    assert not is_fetched(pair, tmp_path / "other")
    assert fetch(pair, cache=tmp_path / "other")[0].is_file()


def test_a_mirror_is_asked_instead_but_its_files_must_be_the_official_ones(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its md5 is not c58f30108f718f92721af3b95e74349a"):
        fetch("cifar10", cache=tmp_path, mirror=f"{server.address}/copies/")
    assert server.asked == ["/copies/cifar-10-python.tar.gz"]


def test_other_names_are_refused() -> None:
    with pytest.raises(InputError, match="'mnist'; there is: cifar10, svhn, tiny-imagenet"):
        fetch("mnist")


def test_without_pooch_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match=r"pip install pooch, or fetch http\S+ yourself and put it at"):
        fetch("tiny-imagenet", cache=tmp_path)


def test_a_mirror_is_a_web_address(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'example.org' is no web address; it starts with http"):
        fetch("cifar10", cache=tmp_path, mirror="example.org")
