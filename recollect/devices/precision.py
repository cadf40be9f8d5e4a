"""How a network is run where its output is judged: in eval mode and full float32, everything restored after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from recollect.errors import InputError

Precision = Literal["ieee", "tf32"]


def _switches() -> list[object]:
    b = torch.backends
    return [b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn, b.mkldnn.matmul, b.mkldnn.conv]  # type: ignore[attr-defined]


@contextmanager
def float32_precision(precision: Precision) -> Iterator[None]:
    """Run float32 products as IEEE float32 or as TF32, without autocast; the caller's settings come back."""
    switches = _switches()
    before = [s.fp32_precision for s in switches]  # type: ignore[attr-defined]
    try:
        for switch in switches:
            switch.fp32_precision = precision  # type: ignore[attr-defined]
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        for switch, was in zip(switches, before, strict=True):
            switch.fp32_precision = "none"  # type: ignore[attr-defined]
            if switch.fp32_precision != was:  # type: ignore[attr-defined]  # not inherited: the caller's own choice
                switch.fp32_precision = was  # type: ignore[attr-defined]


def module_of(f: Any) -> nn.Module | None:
    """The module that `f` is, or whose method it is (`vae.reconstruct`), arguments filled in or not; or None."""
    while isinstance(f, partial):
        f = f.func
    owner = getattr(f, "__self__", f)
    return owner if isinstance(owner, nn.Module) else None


def weights_of(f: Any) -> list[Tensor]:
    """Parameters and buffers of the module behind `f`; none for other functions."""
    network = module_of(f)
    return [*network.parameters(), *network.buffers()] if network is not None else []


def device_of(f: Any, otherwise: torch.device | str = "cpu") -> torch.device:
    """Where the weights behind `f` lie, so where its images must be; `otherwise` where it has none."""
    return next((weights.device for weights in weights_of(f)), torch.device(otherwise))


@contextmanager
def as_judged(f: Any) -> Iterator[None]:
    """`f` in eval mode (where a module is known) and in IEEE float32; its mode and the caller's settings come back."""
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
    """Refuse what is no function, or whose weights are of another dtype than the images."""
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
    """Refuse a device that is not there."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"The device {device} cannot be used: {str(error).splitlines()[0]}") from None


def choose_device(device: torch.device | str | None) -> torch.device:
    """The device that was asked for, if it is there; without a word, a GPU where there is one."""
    check_device(device)
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def apply_checked(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f(x), or an error that names what came back where it is no image like x."""
    return checked(f(x), x)


def checked(out: Tensor, x: Tensor) -> Tensor:
    """What came of x, if it is an image like x."""
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
