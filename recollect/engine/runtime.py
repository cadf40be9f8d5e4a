"""An autoencoder made ready for a solver: in eval mode and full precision, its products and working set chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property

import torch
from torch import Tensor, nn

from recollect.accelerate.cuda_graph_pool import GraphMemory
from recollect.accelerate.dispatch import BY_THE_LIBRARY, OwnProducts, own_products
from recollect.accelerate.tf32x3.tiles import ROWS
from recollect.devices.memory import free_memory, held
from recollect.devices.precision import apply_checked, as_judged, check_dtype, checked, device_of, module_of, weights_of
from recollect.engine.probe import Look, look_at
from recollect.errors import InputError
from recollect.image_values import per_image

Autoencoder = Callable[[Tensor], Tensor]

CPU_CHUNK, CUDA_CHUNK = 512, 4096  # larger working sets gain no speed
CPU_CHUNK_CONVOLUTIONS = 32  # and here lose some: feature maps of more images leave the cache
FEW = 4  # images that tell what a network does
ENOUGH = 64  # images that tell how products of more run
AGREED = 1e-3  # of the largest value: rounding stays far below, a slip does not

note = logging.getLogger(__name__).info


class Ready:
    """An autoencoder fit for a solver: its device and working-set size are known, its output is checked. Images come
    from `home`, and what becomes of them goes back there."""

    def __init__(self, f: Autoencoder, y: Tensor, chunk: int | None, kernels: bool = True) -> None:
        self._f, self._modules = f, _modules(f)
        self.device, self.home = device_of(f, otherwise=y.device), y.device
        self._first = y[: min(FEW, chunk or FEW)].to(self.device)
        self._peak_of_one = 0  # bytes, where a GPU has been watched
        self._products = own_products(self._modules, self.device) if kernels and self._runs_as_python else nullcontext()
        if self._too_few(y):
            self._products = nullcontext()
        if self.runs_kernels:
            with torch.random.fork_rng(devices=[]):  # what a network draws is not to be seen later
                self._settle_products()
        self.chunk = chunk or self._choose_chunk(y)

    def __call__(self, x: Tensor) -> Tensor:
        return apply_checked(self._f, x) if self._too_few(x) else self._by_kernels(x)

    def _by_kernels(self, x: Tensor) -> Tensor:
        """In the library where there are none."""
        with self._products:
            out = self._f(x)
        return checked(out, x)

    def _too_few(self, images: Tensor) -> bool:
        """For the kernels to gain anything."""
        return isinstance(self._products, OwnProducts) and images.shape[0] < self._products.kernels.fewest_images

    @property
    def batch_unit(self) -> int:
        """Batches of so many images take as long as fewer."""
        return ROWS if self.on_tensor_cores and not self._has_convolutions else 8

    @property
    def _has_convolutions(self) -> bool:
        return any(isinstance(m, nn.Conv2d) for m in self._modules)

    @property
    def _runs_as_python(self) -> bool:
        """A module that is neither compiled nor scripted."""
        return bool(self._modules) and not any(_is_compiled(m) for m in self._modules)

    @property
    def runs_kernels(self) -> bool:
        """Whether products run in other kernels than the library's choice."""
        return isinstance(self._products, OwnProducts)

    @property
    def on_tensor_cores(self) -> bool:
        return self.runs_kernels and self.device.type == "cuda"

    @property
    def products(self) -> str:
        """How they are computed, for records."""
        return self._products.kernels.in_words if isinstance(self._products, OwnProducts) else BY_THE_LIBRARY

    @cached_property
    def _look(self) -> Look | None:
        """At what it does in the library with an image of values out of range, which it may change, and, where kernels
        are to do the same, with three of its own; none if it takes neither: its own trouble, which comes up again."""
        own = self._first[: FEW - 1 if self.runs_kernels else 0]
        may_wait = not self.is_known_code
        with suppress(Exception), self._watching():
            return look_at(self._f, torch.cat([own, _values_in_and_out_of_range(self._first[:1])]), may_wait)
        if self.runs_kernels or self.device.type == "cuda":  # else nothing is asked of it but what this leaves open
            with suppress(Exception), self._watching():
                return look_at(self._f, self._first, may_wait)._replace(changes_input=True)
        return None

    def _watching(self) -> AbstractContextManager[None]:
        return self._products.watching() if isinstance(self._products, OwnProducts) else nullcontext()

    @property
    def changes_input(self) -> bool:
        """Whether it may write into what it is given."""
        return self._look is None or self._look.changes_input

    def _settle_products(self) -> None:
        """Kernels are for networks that give the same with them. Feature maps that lie channels last are fastest, but
        a network may take a view of them that is there only channels first, or is a copy otherwise."""
        layouts = (False, True) if self._has_convolutions else (False,)
        for as_given in layouts:
            why = self._differs(self._look, as_given) if self._look else ""
            if why is None:
                return
        if why:
            note("Products run in the library: with ours the network %s.", why)
        self._products, self._peak_of_one = nullcontext(), 0

    def _differs(self, look: Look, as_given: bool) -> str | None:
        """What it does with the kernels, unless that is what was seen but for rounding."""
        assert isinstance(self._products, OwnProducts)
        self._products.as_given = as_given
        try:
            same = _nearly_equal(self._watched(look.images), look.outcome)
        except torch.cuda.OutOfMemoryError:
            raise  # that is not the kernel's
        except Exception as error:  # of a view that is not there, or of a kernel
            return f"fails ({type(error).__name__}: {error})"
        return None if same else "gives something else; it may draw at random"

    def _watched(self, images: Tensor) -> Tensor:
        """What it gives, and on a GPU the memory that one image takes at most."""
        images = images.clone()
        if self.device.type != "cuda":
            return self._by_kernels(images)
        torch.cuda.reset_peak_memory_stats(self.device)
        before = held(self.device).used
        out = self._by_kernels(images)
        self._peak_of_one = -(-(held(self.device).peak - before) // len(images))
        return out

    @property
    def capturable(self) -> bool:
        """Whether a CUDA graph of it may be tried: a plain module on one GPU that nothing listens to, and that does not
        wait for it."""
        if self.device.type != "cuda" or not self._runs_as_python:
            return False
        listened_to = any(m._forward_hooks or m._forward_pre_hooks for m in self._modules)
        if listened_to or {weights.device for weights in weights_of(self._f)} != {self.device}:
            return False
        if self._look and self._look.waits:
            note("Recovery goes on without a CUDA graph: the network waits for the device (%s).", self._look.waits)
            return False
        return True

    @cached_property
    def is_known_code(self) -> bool:
        """Made of PyTorch's modules and ours alone, which keep nothing of what they compute, and of which hardly any
        waits for a GPU: the very first call with images of some number may be one that is captured."""
        return bool(self._modules) and all(_is_known(m) for m in self._modules)

    @cached_property
    def graph_memory(self) -> GraphMemory:
        return GraphMemory.take(self.device)

    def done(self) -> None:
        """Nothing is at work any more."""
        if "graph_memory" in vars(self):
            self.graph_memory.give_back()

    def _choose_chunk(self, y: Tensor) -> int:
        """As many images as surely fit, from the free memory and what one image is seen to need."""
        image = y[0].numel() * y.element_size()
        if self.device.type != "cuda":
            needed = 512 * image  # activations cannot be seen on the CPU: a U-Net of 64 channels takes about 100
            most = CPU_CHUNK_CONVOLUTIONS if self._has_convolutions else CPU_CHUNK
            return int(max(1, min(most, free_memory(self.device) // 2 // needed)))
        if not self._peak_of_one:
            self._watched(self._first)
        results = 2 * len(y) * image if self.home == self.device else 0  # at most, with masks and counts
        if self._fit_a_gpu(image, results) < min(len(y), CUDA_CHUNK):
            self._watched(self._first)  # the first call also loads libraries and packs weights
        return self._fit_a_gpu(image, results)

    def _fit_a_gpu(self, image: int, results: int) -> int:
        needed = 2 * self._peak_of_one + 24 * image  # eagerly and in a graph, each with memory of its own
        return int(max(1, min(CUDA_CHUNK, (free_memory(self.device) - results) // 2 // needed)))


@contextmanager
def ready(f: Autoencoder, y: Tensor, chunk: int | None, kernels: bool = True) -> Iterator[Ready]:
    """`f` in eval mode, without gradients, in full precision; its mode and the caller's settings come back."""
    check_observation(y)
    check_dtype(f, y)
    if chunk is not None and (not isinstance(chunk, int) or chunk < 1):
        raise InputError(f"chunk is a number of images, 1 or more; got {chunk!r}.")
    with torch.no_grad(), as_judged(f):
        yield (settled := Ready(f, y, chunk, kernels))
        settled.done()


def products_of(f: Autoencoder, images: Tensor) -> str:
    """How a recovery of these images, or of many like them, computes the products in f, for records."""
    with ready(f, images, 1) as settled:
        return settled.products


def _is_compiled(module: nn.Module) -> bool:
    wrapped = hasattr(module, "_orig_mod") or module._compiled_call_impl is not None
    return wrapped or isinstance(module, torch.jit.ScriptModule)


def _is_known(module: nn.Module) -> bool:
    """Its class is known, and it was given no function, such as another `forward`."""
    known = type(module).__module__.startswith(("torch.nn.modules.", "recollect."))
    return known and not any(callable(value) for value in vars(module).values())


def _modules(f: Autoencoder) -> list[nn.Module]:
    network = module_of(f)
    return list(network.modules()) if network is not None else []


def check_observation(y: Tensor) -> None:
    if not isinstance(y, Tensor) or y.ndim != 4 or 0 in y.shape:
        found = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise InputError(f"Degraded images are a tensor N x C x H x W with at least one image; got {found}.")
    if y.dtype not in (torch.float32, torch.float64):
        raise InputError(f"Degraded images are float32 or float64, got {y.dtype}.")
    ends = (torch.stack(some.aminmax()) for some in y.split(CUDA_CHUNK))  # NaN is both; in parts: each may be copied
    if not all(bool(lowest_and_highest.isfinite().all()) for lowest_and_highest in ends):
        raise InputError("Degraded images contain NaN or infinite values; erased pixels are zero, not NaN.")


def _values_in_and_out_of_range(image: Tensor) -> Tensor:
    """An image like this, with all values between -2 and 3."""
    return torch.linspace(-2, 3, image.numel(), dtype=image.dtype, device=image.device).view(image.shape)


def _nearly_equal(images: Tensor, others: Tensor) -> bool:
    """Each image but for rounding in values of its size."""
    size = others.nan_to_num(0, 0, 0).flatten(1).abs().amax(1)
    same = (images == others) | (images.isnan() & others.isnan())
    return bool((same | ((images - others).abs() <= AGREED * per_image(size, others))).all())
