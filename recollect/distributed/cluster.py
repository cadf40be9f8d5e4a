"""Connect to a Ray cluster or start a local one; a mistake is refused in one sentence."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from recollect.distributed.cluster_address import address_of
from recollect.distributed.worker_pool import WorkerPool
from recollect.errors import InputError, Interrupted, first_line

ANSWER_SECONDS = 10.0  # in which a server has to answer
SETTINGS_FRAME = 4  # a type of HTTP/2 frame


@dataclass(frozen=True)
class WorkerResources:
    """The CPUs and GPUs of each worker; the number of workers follows from the size of the cluster."""

    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 0 or self.gpus < 0 or not (self.cpus or self.gpus):
            raise InputError(f"A worker needs CPUs or GPUs, got {self.cpus:g} CPUs and {self.gpus:g} GPUs.")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise InputError(f"Ray gives out parts of one GPU, or whole ones; {self.gpus:g} is neither.")

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs" + (f" and {self.gpus:g} GPUs" if self.gpus else "")


@contextmanager
def open_pool(on: str, device: str | None, cpus: float = 1.0, gpus: float | None = None) -> Iterator[WorkerPool]:
    """Open a pool of workers on `ray` (a new local cluster, or RAY_ADDRESS) or at an address.

    Without a `device`, workers use GPUs if the cluster has any; without `gpus`, each then has a whole one. A connection
    that is made here is closed here.
    """
    ray = import_ray()
    connects = not ray.is_initialized()
    if connects:
        _connect(ray, address_of(on))
    try:
        if device is None:
            device = "cuda" if ray.cluster_resources().get("GPU") else "cpu"
        if gpus is None or not device.startswith("cuda"):
            gpus = float(device.startswith("cuda"))
        with WorkerPool(ray, WorkerResources(cpus, gpus), device) as pool:
            yield pool
    finally:
        if connects:
            ray.shutdown()


def import_ray() -> Any:
    """Import Ray, and refuse in one sentence where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # an audit reports to its owner alone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed; pip install 'recollect[ray]' installs it.") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    if ":" in address:
        _check_answer(address)
    fresh: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        with _own_sigterm(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Ray Client connection timed out")  # the error below says it
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **fresh)
    except Exception as error:  # where a cluster does not start in time, Ray raises this very class
        reason = first_line(error)
        token = (
            "; where the cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here too"
            if ":" in address
            else ""
        )
        raise InputError(f"No Ray cluster can be reached at {address}: {reason}{token}.") from None


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM: Ray puts its own in place, which leaves without a sentence."""
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:  # by the handler of Ray
        raise Interrupted(signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_answer(address: str) -> None:
    """Refuse an address where no server like Ray's answers; Ray itself would try for minutes."""
    host, port = address.removeprefix("ray://").rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS) as server:
            is_ray = os.environ.get("RAY_USE_TLS", "0") != "0" or _speaks_http2(server)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Nobody answers at {address} ({error}); ray:// goes to the client port of the head node, usually 10001, "
            "an address without it to its port 6379."
        ) from None
    if not is_ray:
        raise InputError(f"What listens at {address} is no Ray cluster.")


def _speaks_http2(server: socket.socket) -> bool:
    """Return whether a server answers a greeting with its settings, as gRPC servers such as Ray's do."""
    empty_settings = bytes([0, 0, 0, SETTINGS_FRAME, 0, 0, 0, 0, 0])
    try:
        server.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + empty_settings)
        answer = server.recv(9)
    except OSError:  # another protocol, or a closed connection
        return False
    return len(answer) == 9 and answer[3] == SETTINGS_FRAME
