"""Make a recovery faster: kernels for the network's layers, and ADMM steps fused and captured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import torch
from torch import Tensor, nn

from recollect.accelerate.backend import Backend
from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.accelerate.cuda_graphs import CudaGraphs
from recollect.accelerate.dispatch import find_kernels
from recollect.accelerate.fused_admm import FusedAdmm, Network
from recollect.devices.precision import weights_of

AGREEMENT = 1e-3  # of an image's largest value: rounding stays far below, a mistake does not
FEWEST_STEPS = 8  # from which a captured graph pays for itself
BATCH_UNIT = 8  # images
COMPILED_FOR = (64, 512)  # images of the batches whose kernels are compiled ahead ...
COMPILED_FOR_MAPS = (1, 64)  # ... and in networks with convolutions, whose pixels are the rows of a multiplication

log = logging.getLogger(__name__).info


class Accelerator:
    """Acceleration of one network for one recovery.

    `modules` is empty for anything but a plain PyTorch module, and `known` says that its code is PyTorch's and ours.
    The device decides the `backend` unless one is given. Kernels are used until they disagree with PyTorch; ADMM is
    fused in any case.
    """

    def __init__(
        self,
        f: Callable[[Tensor], Tensor],
        modules: Sequence[nn.Module],
        device: torch.device,
        images: int,
        known: bool,
        backend: Backend | None = None,
    ) -> None:
        self._f, self._modules, self._device, self._known, self._images = f, modules, device, known, images
        self._kernels = find_kernels(modules, device, backend)
        if self._kernels and images < self._kernels.backend.fewest_images:
            self._kernels = None

    def __call__(self, x: Tensor, f: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Call the network, or another function that is made of its layers."""
        f = self._f if f is None else f  # a module may have a length of its own, and so be false
        if self._kernels is None or len(x) < self._kernels.backend.fewest_images:
            return f(x)
        with self._kernels:
            return f(x)

    @property
    def kernels_description(self) -> str | None:
        """Describe how layers are computed, for records; None if PyTorch computes them."""
        return self._kernels.backend.description if self._kernels else None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run layers in PyTorch, and note what follows them."""
        if self._kernels is None:
            yield
            return
        with self._kernels.watching():
            yield

    def agrees(self, call: Callable[[Tensor], Tensor], images: Tensor, expected: Tensor) -> bool:
        """Compare the network with kernels to its expected outputs.

        Feature maps in channels-last order are fastest. But a network may take a view that exists only in
        channels-first order: then maps are returned channels first.
        """
        assert self._kernels is not None
        if self._known:  # code of others may keep something of what it computes, which is undefined here
            self._kernels.backend.compile_ahead(lambda: self._call_in_all_sizes(images[:1]))
        orders = (False, True) if self._has_convolutions else (False,)
        for channels_first in orders:
            self._kernels.channels_first = channels_first
            difference = _difference(call, images, expected)
            if difference is None:
                return True
        log("Layers run in PyTorch's kernels: with ours the network %s.", difference)
        return False

    def _call_in_all_sizes(self, image: Tensor) -> None:
        """Call the network on a small and on a large batch: between them they meet most tiles."""
        for size in COMPILED_FOR_MAPS if self._has_convolutions else COMPILED_FOR:
            self(image.expand(min(size, self._images), *image.shape[1:]).contiguous())

    def drop_kernels(self) -> None:
        self._kernels = None

    def fused_admm(self, network: Network, gamma: float, steps: int) -> FusedAdmm:
        """Fuse ADMM's steps for erasures, captured as CUDA graphs if the network can be captured."""
        graphs = None
        if self._can_be_captured(network) and steps >= FEWEST_STEPS:
            graphs = CudaGraphs(self.graph_pool, self.batch_unit, self._known)
        find_kernel = self._kernels.backend.admm_step if self._kernels else None
        return FusedAdmm(network, gamma, steps, graphs, find_kernel)

    def close(self) -> None:
        """Leave the graphs' memory to the next recovery."""
        if "graph_pool" in vars(self):
            vars(self).pop("graph_pool").release()  # another recovery may take it; this network takes one again

    @cached_property
    def graph_pool(self) -> CudaGraphPool:
        """Take memory for graphs when it is first needed."""
        return CudaGraphPool.take(self._device)

    @property
    def batch_unit(self) -> int:
        """Return the number of images to round batches up to; without convolutions whole tiles take no longer."""
        if self._kernels is None or self._has_convolutions:
            return BATCH_UNIT
        return max(BATCH_UNIT, self._kernels.backend.tile_rows)

    @cached_property
    def _has_convolutions(self) -> bool:
        return any(isinstance(module, nn.Conv2d) for module in self._modules)

    def _can_be_captured(self, network: Network) -> bool:
        """Say whether the network is a plain module on one GPU, without hooks, that does not make the host wait."""
        if self._device.type != "cuda" or not self._modules:
            return False
        has_hooks = any(m._forward_hooks or m._forward_pre_hooks for m in self._modules)
        if has_hooks or {weights.device for weights in weights_of(self._f)} != {self._device}:
            return False
        if network.waits:
            log("Recovery runs without a CUDA graph: the network waits for the device (%s).", network.waits)
        return not network.waits


def _difference(call: Callable[[Tensor], Tensor], images: Tensor, expected: Tensor) -> str | None:
    """Say what the network does differently with kernels, if anything but rounding."""
    try:
        same = nearly_equal(call(images), expected)
    except torch.cuda.OutOfMemoryError:
        raise  # not caused by the kernels
    except Exception as error:  # of a view that does not exist, or of a kernel
        return f"fails ({type(error).__name__}: {error})"
    return None if same else "gives other values; it may draw at random"


def nearly_equal(images: Tensor, others: Tensor) -> bool:
    """Compare image by image, each up to rounding in values of its size."""
    largest = others.nan_to_num(0, 0, 0).flatten(1).abs().amax(1).view(-1, *[1] * (others.ndim - 1))
    same = (images == others) | (images.isnan() & others.isnan())
    return bool((same | ((images - others).abs() <= AGREEMENT * largest)).all())
