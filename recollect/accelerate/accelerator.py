"""What makes a recovery faster: kernels for the network's layers, and ADMM steps fused and captured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import torch
from torch import Tensor, nn

from recollect.accelerate.cuda_graph_pool import CudaGraphPool
from recollect.accelerate.dispatch import find_kernels
from recollect.accelerate.fused_admm import FusedAdmm, Network
from recollect.accelerate.tf32x3.tiles import ROWS
from recollect.devices.precision import weights_of

AGREEMENT = 1e-3  # of an image's largest value: rounding stays far below, a mistake does not

log = logging.getLogger(__name__).info


class Accelerator:
    """Acceleration of one network for one recovery. `modules` is empty where the network is no plain PyTorch module.

    Kernels are used until they are seen to disagree with PyTorch; ADMM is fused in any case.
    """

    def __init__(
        self,
        f: Callable[[Tensor], Tensor],
        modules: Sequence[nn.Module],
        device: torch.device,
        images: int,
        known: bool,
    ) -> None:
        self._f, self._modules, self._device, self._known = f, modules, device, known
        self._kernels = find_kernels(modules, device)
        if self._kernels and images < self._kernels.backend.fewest_images:
            self._kernels = None

    def __call__(self, x: Tensor) -> Tensor:
        if self._kernels is None or len(x) < self._kernels.backend.fewest_images:
            return self._f(x)
        with self._kernels:
            return self._f(x)

    @property
    def kernels_in_words(self) -> str | None:
        """How layers are computed, for records; None where PyTorch computes them."""
        return self._kernels.backend.in_words if self._kernels else None

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
        channels-first order, or is a copy otherwise: then maps are returned in the order they were given.
        """
        assert self._kernels is not None
        has_convolutions = any(isinstance(module, nn.Conv2d) for module in self._modules)
        for as_given in (False, True) if has_convolutions else (False,):
            self._kernels.as_given = as_given
            difference = _difference(call, images, expected)
            if difference is None:
                return True
        log("Layers run in PyTorch's kernels: with ours the network %s.", difference)
        return False

    def drop_kernels(self) -> None:
        self._kernels = None

    def fused_admm(self, network: Network, gamma: float, steps: int) -> FusedAdmm:
        """ADMM's steps for erasures, captured as CUDA graphs where the network can be captured."""
        pool = self._pool if self._can_be_captured(network) else None
        return FusedAdmm(network, gamma, steps, pool, self._batch_unit, self._known, self._on_tensor_cores)

    def close(self) -> None:
        """Leave the graphs' memory to the next recovery."""
        if "_pool" in vars(self):
            self._pool.give_back()

    @cached_property
    def _pool(self) -> CudaGraphPool:
        return CudaGraphPool.take(self._device)

    @property
    def _on_tensor_cores(self) -> bool:
        return self._kernels is not None and self._device.type == "cuda"

    @property
    def _batch_unit(self) -> int:
        """Batches are filled up to multiples of this, which take no longer."""
        has_convolutions = any(isinstance(module, nn.Conv2d) for module in self._modules)
        return ROWS if self._on_tensor_cores and not has_convolutions else 8

    def _can_be_captured(self, network: Network) -> bool:
        """A plain module on one GPU, without hooks, that does not make the host wait."""
        if self._device.type != "cuda" or not self._modules:
            return False
        has_hooks = any(m._forward_hooks or m._forward_pre_hooks for m in self._modules)
        if has_hooks or {weights.device for weights in weights_of(self._f)} != {self._device}:
            return False
        if network.waits:
            log("Recovery runs without a CUDA graph: the network waits for the device (%s).", network.waits)
        return not network.waits


def _difference(call: Callable[[Tensor], Tensor], images: Tensor, expected: Tensor) -> str | None:
    """What the network does differently with kernels, if anything but rounding."""
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
