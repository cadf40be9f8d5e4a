"""An autoencoder prepared for a method: in eval mode and full precision, its batch size chosen, its output checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from recollect.devices.memory import free_memory, pytorch_memory
from recollect.devices.model_call import ModelCall
from recollect.devices.precision import check_dtype, device_of, evaluation_mode, module_of
from recollect.engine.probe import Probe, is_compiled, is_known_code, probe_network, values_out_of_range
from recollect.errors import InputError, is_number

if TYPE_CHECKING:
    from recollect.accelerate import Accelerator, FusedAdmm
    from recollect.recovery import Recovery

Autoencoder = Callable[[Tensor], Tensor]

CPU_CHUNK, CUDA_CHUNK = 512, 4096  # larger batches gain no speed
CPU_CHUNK_CONVOLUTIONS = 32  # and here lose some: feature maps of more images leave the cache
PROBE_IMAGES = 4  # enough to see what a network does
ARITHMETIC_IMAGES = 64  # enough to know which kernels larger batches run in
VARIABLE = "RECOLLECT_ACCELERATE"
IN_PYTORCH = "by the library"  # in records: PyTorch's own kernels

_accelerated = ContextVar("_accelerated", default=True)
_shared: ContextVar[dict[Key, Runtime] | None] = ContextVar("_shared", default=None)


class Remembered(NamedTuple):
    """What the method before made of which damaged images, for one that begins with the same."""

    method: object
    y: Tensor
    recovery: Recovery


class Runtime:
    """An autoencoder fit for a method: its device and batch size are known, its output is checked.

    Images come from `home`, and results go back there.
    """

    def __init__(self, f: Autoencoder, y: Tensor, chunk: int | None, accelerated: bool = True) -> None:
        self._f, self._modules, self.origin = f, _modules(f), origin_of(f)
        self.device, self.home = device_of(f, otherwise=y.device), y.device
        self.images = len(y)
        self._first = y[: min(PROBE_IMAGES, chunk or PROBE_IMAGES)].to(self.device)
        self._bytes_an_image = 0  # at the peak of a call, where a GPU has been measured
        self._call = ModelCall()
        self.remembered: Remembered | None = None  # in a block of shared runtimes
        self._fused: dict[tuple[float, int], FusedAdmm] = {}
        self._accelerator = self._find_accelerator(len(y)) if accelerated and is_wanted() else None
        if self._runs_kernels:
            with torch.random.fork_rng(devices=[]):  # draws of the network must not shift the caller's
                self._settle_kernels()
        self.chunk = chunk or self._choose_chunk(y)

    def __call__(self, x: Tensor, settings: Tensor | None = None) -> Tensor:
        """Call the model; with settings, as the step of ADMM that they belong to."""
        f: Callable[..., Tensor] = self._f
        if settings is not None:
            f = partial(f, settings=settings)
        if self._accelerator is not None:
            f = partial(self._accelerator, f=f)
        return self._call(f, x)

    @property
    def network(self) -> nn.Module | None:
        """The module behind the function that is called, if there is one."""
        return module_of(self._f)

    def admm_schedule(self, steps: int) -> Tensor | None:
        """Return the settings of each step of ADMM, and a last row for calls after them; None if no step differs."""
        schedule = getattr(module_of(self._f), "admm_schedule", None)
        return None if schedule is None else schedule(steps)

    def fused_admm(self, gamma: float, steps: int) -> FusedAdmm | None:
        """ADMM's steps for erasures in one pass over memory; None without acceleration."""
        if self._accelerator is None:
            return None
        if (gamma, steps) not in self._fused:
            self._fused[gamma, steps] = self._accelerator.fused_admm(self, gamma, steps)
        return self._fused[gamma, steps]

    @property
    def arithmetic(self) -> str:
        """How the network's layers are computed, for records."""
        description = self._accelerator.kernels_description if self._accelerator else None
        return description or IN_PYTORCH

    @cached_property
    def probe(self) -> Probe | None:
        """What the network does in PyTorch with an image of values out of range, and where kernels compare, with three
        of its own; None if it refuses both: the same error comes up when it is called in earnest."""
        count = PROBE_IMAGES - 1 if self._runs_kernels else 0
        own_images = self._first[:count]
        may_wait = not self.is_known_code
        with suppress(Exception), self._watching():
            return probe_network(self._f, torch.cat([own_images, values_out_of_range(self._first[:1])]), may_wait)
        if self._runs_kernels or self.device.type == "cuda":  # on a CPU the answer would not be used
            with suppress(Exception), self._watching():
                return probe_network(self._f, self._first, may_wait)._replace(changes_input=True)
        return None

    @property
    def changes_input(self) -> bool:
        """Whether the network may write into its input."""
        return self.probe is None or self.probe.changes_input

    @property
    def waits(self) -> str:
        """The operation for which the host waits for a GPU, if one was seen."""
        return self.probe.waits if self.probe else ""

    @cached_property
    def is_known_code(self) -> bool:
        return is_known_code(self._modules)

    def close(self) -> None:
        """Return what acceleration holds to the next recovery."""
        self._fused.clear()  # each holds this runtime: graphs would stay until a garbage collection
        if self._accelerator:
            self._accelerator.close()

    @property
    def _runs_kernels(self) -> bool:
        return self._accelerator is not None and self._accelerator.kernels_description is not None

    @property
    def _has_convolutions(self) -> bool:
        return any(isinstance(m, nn.Conv2d) for m in self._modules)

    def _find_accelerator(self, images: int) -> Accelerator | None:
        """Import `accelerate`, here alone; without that folder recovery is slower and otherwise equal."""
        if find_spec("recollect.accelerate") is None:
            return None
        from recollect.accelerate import Accelerator

        modules = self._modules
        if any(is_compiled(module) for module in modules):
            modules = []  # their layers are compiled into other functions
        return Accelerator(self._f, modules, self.device, images, self.is_known_code)

    def _watching(self) -> AbstractContextManager[None]:
        return self._accelerator.watching() if self._accelerator else nullcontext()

    def _settle_kernels(self) -> None:
        """Drop the kernels unless the network gives the same with them, but for rounding."""
        assert self._accelerator is not None
        if self.probe is None or not self._accelerator.agrees(
            self._measured_call, self.probe.images, self.probe.outputs
        ):
            self._accelerator.drop_kernels()
            self._bytes_an_image = 0

    def _measured_call(self, images: Tensor) -> Tensor:
        """Call the network, and on a GPU measure the memory that one image takes."""
        images = images.clone()
        if self.device.type != "cuda":
            return self(images)
        torch.cuda.reset_peak_memory_stats(self.device)
        before = pytorch_memory(self.device).used
        outputs = self(images)
        self._bytes_an_image = -(-(pytorch_memory(self.device).peak - before) // len(images))
        return outputs

    def _choose_chunk(self, y: Tensor) -> int:
        """Choose how many images surely fit, from the free memory and what one image needs."""
        image = y[0].numel() * y.element_size()
        if self.device.type != "cuda":
            needed = 512 * image  # activations cannot be measured on a CPU: a U-Net of 64 channels takes about 100
            most = CPU_CHUNK_CONVOLUTIONS if self._has_convolutions else CPU_CHUNK
            return int(max(1, min(most, free_memory(self.device) // 2 // needed)))
        if not self._bytes_an_image:
            self._measured_call(self._first)
        results = 2 * len(y) * image if self.home == self.device else 0  # at most, with masks and counts
        if self._fit_a_gpu(image, results) < min(len(y), CUDA_CHUNK):
            self._measured_call(self._first)  # the first call also loads libraries and packs weights
        return self._fit_a_gpu(image, results)

    def _fit_a_gpu(self, image: int, results: int) -> int:
        needed = 2 * self._bytes_an_image + 24 * image  # eagerly and in a graph, each with memory of its own
        return int(max(1, min(CUDA_CHUNK, (free_memory(self.device) - results) // 2 // needed)))


@contextmanager
def prepare(f: Autoencoder, y: Tensor, chunk: int | None, accelerated: bool = True) -> Iterator[Runtime]:
    """Prepare f: eval mode, no gradients, full precision; its mode and the caller's settings are restored after."""
    check_damaged(y)
    check_dtype(f, y)
    if chunk is not None and (not isinstance(chunk, int) or chunk < 1):
        raise InputError(f"chunk is a number of images, 1 or more; got {chunk!r}.")
    with torch.no_grad(), evaluation_mode(f):
        runtime = _take_shared(f, y, chunk, accelerated) or Runtime(f, y, chunk, accelerated)
        yield runtime
        runtime.close()  # not after an error: a GPU may still be at work
        _share(runtime, f, y, chunk, accelerated)


@contextmanager
def shared_runtimes() -> Iterator[None]:
    """Prepare a network once for all recoveries in this block: meanwhile its weights must not change."""
    before = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(before)


def _take_shared(f: Autoencoder, y: Tensor, chunk: int | None, accelerated: bool) -> Runtime | None:
    """Take out a runtime that was prepared for at least as many images like these."""
    shared = _shared.get() or {}
    runtime = shared.pop(_key(f, y, chunk, accelerated), None)
    return runtime if runtime and runtime.images >= len(y) else None


def _share(runtime: Runtime, f: Autoencoder, y: Tensor, chunk: int | None, accelerated: bool) -> None:
    """Leave a runtime to the next recovery of its network; those of other networks go, with their packed weights."""
    shared = _shared.get()
    if shared is None:
        return
    key = _key(f, y, chunk, accelerated)
    for other in [other for other in shared if other[0] != key[0]]:
        del shared[other]
    shared[key] = runtime


Key = tuple[int, bool, int | None, torch.device, torch.dtype, torch.Size]


def _key(f: Autoencoder, y: Tensor, chunk: int | None, accelerated: bool) -> Key:
    return id(f), accelerated and is_wanted(), chunk, y.device, y.dtype, y.shape[1:]  # a runtime keeps f, and its id


def arithmetic_of(f: Autoencoder, images: Tensor) -> str:
    """Say how a recovery of many images like these computes the layers of f, for records."""
    images = images[:ARITHMETIC_IMAGES]
    with prepare(f, images, 1) as runtime:
        return runtime.arithmetic


@contextmanager
def without_acceleration() -> Iterator[None]:
    """Let recoveries of this thread take the plain path: PyTorch's own kernels and the loop of Algorithm 1."""
    before = _accelerated.set(False)
    try:
        yield
    finally:
        _accelerated.reset(before)


def is_wanted() -> bool:
    """Say whether this thread and the environment want acceleration."""
    setting = os.environ.get(VARIABLE, "")
    if setting not in ("", "off"):
        raise InputError(f"The environment variable {VARIABLE} is 'off' or not set; it is {setting!r}.")
    return _accelerated.get() and not setting


def origin_of(f: Autoencoder) -> float:
    """Return the pixel value that is zero in the model's own range, where ADMM starts; 0 unless the model says so."""
    origin = getattr(module_of(f), "admm_origin", 0.0)
    return float(origin) if is_number(origin) else 0.0


def check_damaged(y: Tensor) -> None:
    """Refuse what cannot be a batch of damaged images."""
    if not isinstance(y, Tensor) or y.ndim not in (2, 3, 4) or 0 in y.shape or _is_one_image(y):
        given = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise InputError(f"Damaged images are a tensor N x C x H x W with at least one image; got {given}.")
    if y.dtype not in (torch.float32, torch.float64):
        raise InputError(f"Damaged images are float32 or float64, got {y.dtype}.")
    ends = (torch.stack(part.aminmax()) for part in y.split(CUDA_CHUNK))  # NaN is both; in parts: each may be copied
    if not all(bool(lowest_and_highest.isfinite().all()) for lowest_and_highest in ends):
        raise InputError("Damaged images contain NaN or infinite values; erased pixels are zero, not NaN.")


def _is_one_image(y: Tensor) -> bool:
    """Say whether y is C x H x W and no batch; signals have not as many channels as values."""
    return y.ndim == 3 and len(y) in (1, 3) and y.shape[1] == y.shape[2]


def _modules(f: Autoencoder) -> list[nn.Module]:
    network = module_of(f)
    return list(network.modules()) if network is not None else []
