"""Run a network for evaluation: in eval mode and full float32, on a device that exists, with its output checked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from recollect.counting import with_article
from recollect.devices.device_names import no_such_device
from recollect.devices.model_call import call_of
from recollect.devices.module_mode import eval_mode
from recollect.errors import InputError

Precision = Literal["ieee", "tf32"]


def float32_switches() -> list[object]:
    b = torch.backends
    return [b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn, b.mkldnn.matmul, b.mkldnn.conv]  # type: ignore[attr-defined]


class _Requests:
    """The precisions that threads ask for. PyTorch's switches belong to the process, so threads share them.

    Within a thread the innermost request counts. Between threads IEEE float32 wins: it is never less exact.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread: dict[int, list[Precision]] = {}
        self._before: list[str] = []

    def add(self, precision: Precision) -> None:
        with self._lock:
            if not self._of_thread:
                self._before = [s.fp32_precision for s in float32_switches()]  # type: ignore[attr-defined]
            self._of_thread.setdefault(threading.get_ident(), []).append(precision)
            self._apply()

    def remove(self) -> None:
        """Drop this thread's innermost request; the last one restores the caller's settings."""
        with self._lock:
            own = self._of_thread[threading.get_ident()]
            own.pop()
            if not own:
                del self._of_thread[threading.get_ident()]
            if self._of_thread:
                self._apply()
            else:
                self._restore()

    def _apply(self) -> None:
        innermost = {requests[-1] for requests in self._of_thread.values()}
        for switch in float32_switches():
            switch.fp32_precision = "ieee" if "ieee" in innermost else "tf32"  # type: ignore[attr-defined]

    def _restore(self) -> None:
        for switch, was in zip(float32_switches(), self._before, strict=True):
            switch.fp32_precision = "none"  # type: ignore[attr-defined]
            if switch.fp32_precision != was:  # type: ignore[attr-defined]  # the caller's own choice, not inherited
                switch.fp32_precision = was  # type: ignore[attr-defined]


_requests = _Requests()


@contextmanager
def float32_precision(precision: Precision) -> Iterator[None]:
    """Multiply float32 matrices as IEEE float32 or as TF32, without autocast; restore the caller's settings."""
    _requests.add(precision)
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        _requests.remove()


def module_of(f: Any) -> nn.Module | None:
    """Return the module that `f` is, or whose method it is (`vae.reconstruct`), also behind a `partial`; else None."""
    while isinstance(f, partial):
        f = f.func
    owner = getattr(f, "__self__", f)
    return owner if isinstance(owner, nn.Module) else None


def weights_of(f: Any) -> list[Tensor]:
    """List the parameters and buffers of the module behind `f`; none for other functions."""
    network = module_of(f)
    if network is None:
        return []
    return [*network.parameters(), *network.buffers()]


def device_of(f: Any, otherwise: torch.device | str = "cpu") -> torch.device:
    """Return the device of the weights behind `f`, where its images must be; `otherwise` if it has none."""
    return next((weights.device for weights in weights_of(f)), torch.device(otherwise))


@contextmanager
def evaluation_mode(f: Any) -> Iterator[None]:
    """Put the module behind `f`, if any, in eval mode, and compute in IEEE float32; restore both.

    Threads may share a module and the process's settings: the last one to leave restores them.
    """
    network = module_of(f)
    with nullcontext() if network is None else eval_mode(network), float32_precision("ieee"):
        yield


def check_dtype(f: Any, x: Tensor) -> None:
    """Refuse anything but a function whose weights have the dtype of the images."""
    if not callable(f):
        raise InputError(
            f"An autoencoder is a function from images to images; {with_article(type(f).__name__)} is not one."
        )
    network = module_of(f)
    if network is None:
        return
    for weights in network.parameters():
        if weights.is_floating_point() and weights.dtype != x.dtype:
            raise InputError(
                f"The autoencoder's weights are {weights.dtype} and the images {x.dtype}; convert one of them, "
                f"for example autoencoder.to({x.dtype})."
            )


def check_device(device: torch.device | str | None) -> None:
    """Refuse a device that does not exist."""
    try:
        torch.empty(0, device=device)
        exists = device is None or torch.device(device).type != "cpu" or not torch.device(device).index
    except (RuntimeError, AssertionError, NotImplementedError):
        exists = False
    if not exists:  # torch takes any number of a CPU
        raise no_such_device(device, _devices())


def _devices() -> str:
    """List the devices of this machine."""
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return " or ".join(["cpu", *gpus])


def choose_device(device: torch.device | str | None) -> torch.device:
    """Return the device that was asked for, if it exists. Defaults to CUDA if available."""
    check_device(device)
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def apply_checked(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return f(x); raise an error that names what it returned if those are no images like x."""
    return call_of(f)(f, x)
