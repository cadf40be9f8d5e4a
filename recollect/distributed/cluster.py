"""Finding or starting a Ray cluster, and what a mistake there sounds like."""

from __future__ import annotations

import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from recollect.distributed.actors import Crew
from recollect.errors import InputError

PATIENCE = 10.0  # seconds in which whoever is at an address has to answer
SETTINGS = 4  # the type of an HTTP/2 frame


@dataclass(frozen=True)
class Each:
    """What every worker is given; the number of workers follows from what the cluster has."""

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
def crew_on(on: str, device: str | None, cpus: float = 1.0, gpus: float | None = None) -> Iterator[Crew]:
    """Workers on `ray` (a fresh local one, or RAY_ADDRESS), or at an address; what was started here ends here.

    Without a `device` they use GPUs where the cluster has any; without `gpus` each then has a whole one.
    """
    ray = import_ray()
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address_of(on))
    try:
        device = device or ("cuda" if ray.cluster_resources().get("GPU") else "cpu")
        wanted = (1.0 if gpus is None else gpus) if device.startswith("cuda") else 0.0
        with Crew(ray, Each(cpus, wanted), device) as crew:
            yield crew
    finally:
        if ours:
            ray.shutdown()


def import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # an audit reports to its owner alone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed; pip install 'recollect[ray]' installs it.") from None
    return ray


def address_of(on: str) -> str:
    """What ray.init calls the place; a wrong spelling is told here."""
    if on == "ray":
        return os.environ.get("RAY_ADDRESS") or "local"
    if on == "auto" or re.fullmatch(r"(ray://)?[\w.\-]+:\d+", on):
        return on
    raise InputError(f"--on takes ray, ray://HOST:PORT, HOST:PORT or auto, not {on!r}.")


def _connect(ray: Any, address: str) -> None:
    if ":" in address:
        _check_answer(address)
    fresh: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Ray Client connection timed out")  # told below, in one sentence
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **fresh)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        token = "; where the cluster asks for a token, RAY_AUTH_TOKEN must be set here too" if ":" in address else ""
        raise InputError(f"There is no Ray cluster to be reached at {address}: {reason}{token}.") from None


def _check_answer(address: str) -> None:
    """Whether a server like Ray's listens there: Ray itself would try for minutes."""
    host, port = address.removeprefix("ray://").rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as server:
            spoken = os.environ.get("RAY_USE_TLS", "0") != "0" or _speaks_http2(server)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Nobody answers at {address} ({error}); ray:// goes to the client port of the head node, usually 10001, "
            "an address without it to its port 6379."
        ) from None
    if not spoken:
        raise InputError(f"What listens at {address} is no Ray cluster.")


def _speaks_http2(server: socket.socket) -> bool:
    """Ray's ports are gRPC's: greeted, they answer with their settings at once."""
    empty_settings = bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
    try:
        server.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + empty_settings)
        answer = server.recv(9)
    except OSError:  # it waits for something else, or hangs up
        return False
    return len(answer) == 9 and answer[3] == SETTINGS
