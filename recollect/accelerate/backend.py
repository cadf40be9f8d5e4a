"""What a backend is: kernels of one kind of device for the layers of a network, and what they take and return."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

AdmmStep = Callable[[Tensor, Tensor, Tensor, Tensor], None]  # w, v, of_y, of_w: w <- of_y + (1 - 2 of_w) v + of_w w


class LayerCall(NamedTuple):
    """A linear layer or a convolution applied to x: images x height x width x channels."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    scale: int = 1  # 2 if x is upsampled first: nearest neighbour, in height and width

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Images x height x width x columns, of which a weight has one for every channel of the output."""
        return _output_shape(self.x.shape, self.weight.shape, self.stride, self.padding, self.scale)


@lru_cache(4096)
def _output_shape(
    x: torch.Size, weight: torch.Size, stride: int, padding: tuple[int, int], scale: int
) -> tuple[int, int, int, int]:
    taps_down, taps_across = weight[2:] or (1, 1)
    height = (x[1] * scale + 2 * padding[0] - taps_down) // stride + 1
    width = (x[2] * scale + 2 * padding[1] - taps_across) // stride + 1
    return x[0], height, width, weight[0]


class Activation(NamedTuple):
    """An activation that a kernel can compute in the epilogue of a layer."""

    name: str  # as the kernel knows it
    slope: float = 0.0


class LayerOutput(NamedTuple):
    """The output of a layer, and of the activation after it if one was asked for."""

    values: Tensor
    activated: Tensor | None


class Backend(Protocol):
    """Kernels for the layers of a network on one device."""

    description: str  # for records
    fewest_images: int  # in a batch that gains from the kernels
    tile_rows: int  # rows of a linear layer that take as long as one
    fuses_activations: bool  # an activation can be computed in the epilogue of its layer

    def takes(self, weight: Tensor, /) -> bool:
        """Say whether layers with this weight gain from the kernels."""

    def packed_bytes(self, weight: Tensor, /) -> int:
        """Bound the memory that the packed forms of a weight take."""

    def is_usable(self, weights: list[Tensor], /) -> bool:
        """Say whether the kernels run here and compute these weights' layers correctly; log why not."""

    def accepts(self, call: LayerCall, /) -> bool:
        """Say whether the kernels can run this call of a layer whose weight they take."""

    def fuse_upsampling(self, call: LayerCall, source: Tensor, /) -> LayerCall | None:
        """Rewrite a convolution of maps upsampled from `source`, to read the source itself; None if it cannot."""

    def layout(self, call: LayerCall, /) -> Hashable:
        """Name the form in which this call needs its weight."""

    def pack(self, weight: Tensor, layout: Any, /) -> Any:
        """Bring a weight into the form that calls of this layout need."""

    def run(self, call: LayerCall, packed: Any, activation: Activation | None, /) -> LayerOutput:
        """Compute a layer, and an activation of its output."""

    def compile_ahead(self, run: Callable[[], Any], /) -> None:
        """Compile all kernels that `run` launches, side by side; what it computes is undefined."""

    def upsample(self, maps: Tensor, /) -> Tensor | None:
        """Upsample channels-last maps by 2, nearest neighbour; None leaves them to PyTorch."""

    def max_pool(self, maps: Tensor, /) -> Tensor | None:
        """Max-pool channels-last maps, 2 x 2 with stride 2; None leaves them to PyTorch."""

    def admm_step(self, values: int, /) -> AdmmStep | None:
        """Find a kernel for ADMM's step on tensors of this many values, in one pass over memory."""


def contiguous(values: Tensor) -> Tensor:
    """Make values contiguous, with no negation pending: kernels read memory as it is."""
    return values.resolve_neg().contiguous()


def passes_self_test(kernels: str, self_test: Callable[[], bool], log: Callable[..., None]) -> bool:
    """Run the self-test of kernels with this name; log why they are not used if it fails or is wrong."""
    try:
        correct = self_test()
    except torch.cuda.OutOfMemoryError:
        raise  # not caused by the kernels, and may be over next time
    except Exception as error:  # recovery runs without them
        log("Layers run in PyTorch's kernels: %s failed (%s: %s).", kernels, type(error).__name__, error)
        return False
    if not correct:
        log("Layers run in PyTorch's kernels: %s computed wrong values in a self-test.", kernels)
    return correct
