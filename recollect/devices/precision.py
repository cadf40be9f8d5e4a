"""Run a network for evaluation: in eval mode and full float32, on a device that exists, with its output checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from recollect.errors import InputError

Precision = Literal["ieee", "tf32"]


def float32_switches() -> list[object]:
    b = torch.backends
    return [b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn, b.mkldnn.matmul, b.mkldnn.conv]  # type: ignore[attr-defined]


@contextmanager
def float32_precision(precision: Precision) -> Iterator[None]:
    """Multiply float32 matrices as IEEE float32 or as TF32, without autocast; restore the caller's settings."""
    switches = float32_switches()
    before = [s.fp32_precision for s in switches]  # type: ignore[attr-defined]
    try:
        for switch in switches:
            switch.fp32_precision = precision  # type: ignore[attr-defined]
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        for switch, was in zip(switches, before, strict=True):
            switch.fp32_precision = "none"  # type: ignore[attr-defined]
            if switch.fp32_precision != was:  # type: ignore[attr-defined]  # the caller's own choice, not inherited
                switch.fp32_precision = was  # type: ignore[attr-defined]


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
    """Put the module behind `f`, if any, in eval mode, and compute in IEEE float32; restore both."""
    network = module_of(f)
    modules = network.modules() if network is not None else ()
    training = [m for m in modules if getattr(m, "training", False)]  # a frozen TorchScript module has no mode
    try:
        for module in training:
            module.training = False
        with float32_precision("ieee"):
            yield
    finally:
        for module in training:
            module.training = True


def check_dtype(f: Any, x: Tensor) -> None:
    """Refuse anything but a function whose weights have the dtype of the images."""
    if not callable(f):
        raise InputError(f"An autoencoder is a function from images to images; a {type(f).__name__} is not one.")
    network = module_of(f)
    for weights in network.parameters() if network is not None else ():
        if weights.is_floating_point() and weights.dtype != x.dtype:
            raise InputError(
                f"The autoencoder's weights are {weights.dtype} and the images {x.dtype}; convert one of them, "
                f"for example autoencoder.to({x.dtype})."
            )


def check_device(device: torch.device | str | None) -> None:
    """Refuse a device that does not exist."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"The device {device} cannot be used: {str(error).splitlines()[0]}") from None


def choose_device(device: torch.device | str | None) -> torch.device:
    """Return the device that was asked for, if it exists. Defaults to CUDA if available."""
    check_device(device)
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def apply_checked(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return f(x); raise an error that names what it returned if those are no images like x."""
    return check_output(f(x), x)


def check_output(out: Tensor, x: Tensor) -> Tensor:
    """Return the output for x; raise an error if these are no images like x."""
    if not isinstance(out, Tensor):
        raise InputError(
            f"The autoencoder returned a {type(out).__name__}, not a tensor; wrap it so that it returns the image."
        )
    if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        raise InputError(
            f"The autoencoder was given {_describe(x)} and returned {_describe(out)}; "
            "it must return images of the shape and dtype it is given, on the same device."
        )
    return out


def _describe(x: Tensor) -> str:
    return f"{'x'.join(map(str, x.shape))} {str(x.dtype).removeprefix('torch.')} on {x.device}"
