"""One process writes to a folder at a time. Its death releases the lock, and a folder that vanishes is noticed."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
UNFINISHED = ".unfinished"  # how the name of a file ends while it is written
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

_held: dict[Path, int] = {}  # the folders that this process has locked, with the number of the lock's inode


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[None]:
    """Keep other processes out of a folder; remove the unfinished files of one that was killed in it.

    The kernel drops the lock when its process dies, so that no lock is ever stale, and a process with the number of a
    dead one is not taken for it. On NFS the kernel passes the lock on to the server; file systems that know no locks,
    and NFS mounted with nolock, keep processes on other machines out no longer.
    """
    made, folder = not Path(folder).exists(), Path(folder).resolve()
    handle = _acquire(folder)
    _held[folder] = os.fstat(handle).st_ino
    try:
        _remove_unfinished(folder)
        yield
    finally:
        del _held[folder]
        with suppress(OSError):
            (folder / LOCK).unlink()  # before it is released: whoever waits for it sees that it is gone
        os.close(handle)
        if made:
            with suppress(OSError):
                folder.rmdir()  # if nothing was written


def check_present(path: Path) -> None:
    """Refuse to write into a locked folder that was removed or replaced meanwhile."""
    parent = path.parent.resolve()
    for folder, inode in _held.items():
        if folder != parent and folder not in parent.parents:
            continue
        try:
            is_present = (folder / LOCK).stat().st_ino == inode
        except OSError:
            is_present = False
        if not is_present:
            raise InputError(
                f"The folder {folder} was removed or replaced while results were written to it; run the same command "
                "again, and leave the folder until it ends."
            )


def _acquire(folder: Path) -> int:
    path = folder / LOCK
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"The folder {folder} cannot be written to: {error.strerror or error}.") from None
        if not _lock(handle):
            os.close(handle)
            raise InputError(
                f"{folder} is in use by {_holder(path)}; wait until that process ends, or choose another folder."
            )
        with suppress(OSError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                os.ftruncate(handle, 0)
                os.write(handle, _description())
                return handle
        os.close(handle)  # the process before removed the file after it was opened here


def _lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _UNSUPPORTED
    return True


def _description() -> bytes:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": now}).encode()


def _holder(path: Path) -> str:
    """Say who holds a lock, as far as the lock file tells."""
    try:
        facts = json.loads(path.read_bytes())
        return f"process {facts['process']} on {facts['host']} since {facts['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _remove_unfinished(folder: Path) -> None:
    for path in folder.rglob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)
