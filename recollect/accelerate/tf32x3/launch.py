"""Launch the kernels: layers on a GPU's tensor cores, upsampling, max-pooling and ADMM's step.

Only the order of sums differs from PyTorch's kernels, and with it the rounding.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from recollect.accelerate.backend import Activation, LayerCall, LayerOutput, contiguous
from recollect.accelerate.tf32x3.compilation import launch_kernel
from recollect.accelerate.tf32x3.launch_plan import INT32_VALUES, plan_launch
from recollect.accelerate.tf32x3.lowering import CHUNK, Lowering, lowering_of, packed_shape
from recollect.accelerate.tf32x3.packing import Packed

REDUCE_BLOCK, SPLITS_AT_ONCE = 512, 4  # values that a program of the split-K reduction sums up, and loads in flight
ELEMENTWISE_BLOCK, COL2IM_BLOCK = 1024, 256  # values of a program
FEW_REGISTERS = {"leaky_relu"}  # activations in the matmul's epilogue; others leave room for fewer tiles


def processors_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def run_layer(call: LayerCall, layer: Packed, processors: int, activation: Activation | None = None) -> LayerOutput:
    """Compute a layer and an activation of its output.

    For im2col and col2im the matrix multiplication is that of a linear layer. Of its weight only the shape is read.
    """
    lowering = lowering_of(call)
    if lowering is Lowering.IM2COL:
        pixels = LayerCall(im2col(call), layer.upper[:, 0, 0], call.bias)
        values, activated = matmul(pixels, layer, processors, activation)
        if activated is not None:
            activated = activated.view(call.output_shape)
        return LayerOutput(values.view(call.output_shape), activated)
    call = call._replace(x=contiguous(call.x))
    if lowering is Lowering.COL2IM:
        pixels = LayerCall(call.x.view(-1, 1, 1, call.x.shape[3]), layer.upper[:, 0, 0], None)
        return col2im(call, matmul(pixels, layer, processors).values, activation)
    return matmul(call, layer, processors, activation)


def matmul(call: LayerCall, layer: Packed, processors: int, activation: Activation | None = None) -> LayerOutput:
    """Launch one matrix multiplication of contiguous values, its split-K reduction, and an activation."""
    from recollect.accelerate.tf32x3 import kernels

    x, shape, (tile, splits, grid, numbers, is_flat) = call.x, call.output_shape, plan_launch(call, processors)
    out = x.new_empty(shape)
    sums = out if splits == 1 else x.new_empty(splits, *shape)
    activated = x.new_empty(shape) if activation else None
    name, slope = activation or (None, 0.0)
    epilogue = (sums if activated is None else activated, slope)
    fused = name if splits == 1 and name in FEW_REGISTERS else None
    with _on(x.device):
        launch_kernel(
            kernels.matmul, grid, x, layer.upper, layer.rest, call.bias, sums, *epilogue, *numbers, ROWS=tile.rows,
            COLUMNS=tile.columns, CHUNK=CHUNK, FLAT=is_flat, ACTIVATION=fused, num_stages=3, num_warps=tile.warps,
        )  # fmt: skip
        if splits > 1:
            launch_kernel(
                kernels.reduce_split_k, (-(-out.numel() // REDUCE_BLOCK),), sums, out, *epilogue, out.numel(), splits,
                BLOCK=REDUCE_BLOCK, AT_ONCE=SPLITS_AT_ONCE, ACTIVATION=name,
            )  # fmt: skip
        elif name != fused:
            launch_kernel(
                kernels.activate_all, _blocks(out), out, *epilogue, out.numel(), BLOCK=ELEMENTWISE_BLOCK,
                ACTIVATION=name,
            )  # fmt: skip
    return LayerOutput(out, activated)


def im2col(call: LayerCall) -> Tensor:
    """Gather what all taps see of the images, channel by channel, for every output pixel."""
    from recollect.accelerate.tf32x3 import kernels

    count, down, across, _ = call.output_shape
    taps, channels = call.weight.shape[2:], call.x.shape[3]
    terms = packed_shape(call.weight.shape, Lowering.IM2COL)[3]
    x = call.x.resolve_neg()
    if not x.permute(0, 3, 1, 2).is_contiguous():  # the kernel reads images channels first, or maps channels last
        x = x.contiguous()
    out = x.new_empty(count * down * across, 1, 1, terms)
    with _on(x.device):
        launch_kernel(
            kernels.im2col, _blocks(out), x, out, out.numel(), down, across, *x.shape[1:3], channels,
            taps[0] * taps[1] * channels, taps[1], call.stride, *call.padding, *x.stride(), TERMS=terms,
            BLOCK=ELEMENTWISE_BLOCK,
        )  # fmt: skip
    return out


def col2im(call: LayerCall, taps_of_pixels: Tensor, activation: Activation | None) -> LayerOutput:
    """Sum, for every output pixel, what its taps made of the pixels that they see."""
    from recollect.accelerate.tf32x3 import kernels

    _, down, across, columns = call.output_shape
    taps = call.weight.shape[2:]
    out = call.x.new_empty(call.output_shape)
    activated = torch.empty_like(out) if activation else None
    name, slope = activation or (None, 0.0)
    with _on(out.device):
        launch_kernel(
            kernels.col2im, (-(-out.numel() // COL2IM_BLOCK),), taps_of_pixels, call.bias, out,
            out if activated is None else activated, slope, out.numel(), down, across, *call.x.shape[1:3], columns,
            taps_of_pixels.shape[3], *call.padding, TAPS_DOWN=taps[0], TAPS_ACROSS=taps[1], BLOCK=COL2IM_BLOCK,
            ACTIVATION=name,
        )  # fmt: skip
    return LayerOutput(out, activated)


def upsample(x: Tensor) -> Tensor | None:
    """Upsample channels-last maps by 2, nearest neighbour; None if there are too many values to address."""
    if 4 * x.numel() >= INT32_VALUES:
        return None
    from recollect.accelerate.tf32x3 import kernels

    count, channels, height, width = x.shape
    out = x.new_empty(count, 2 * height, 2 * width, channels)
    with _on(x.device):
        launch_kernel(kernels.upsample, _blocks(out), x, out, out.numel(), width, channels, BLOCK=ELEMENTWISE_BLOCK)
    return out.permute(0, 3, 1, 2)


def max_pool(x: Tensor) -> Tensor | None:
    """Max-pool channels-last maps, 2 x 2 with stride 2; None if too many to address, or too small to have a square.

    PyTorch's own call then pools the maps, or raises its own error.
    """
    count, channels, height, width = x.shape
    if min(height, width) < 2 or 4 * x.numel() >= INT32_VALUES:
        return None
    from recollect.accelerate.tf32x3 import kernels

    out = x.new_empty(count, height // 2, width // 2, channels)
    with _on(x.device):
        launch_kernel(
            kernels.max_pool, _blocks(out), x, out, out.numel(), height, width, channels, BLOCK=ELEMENTWISE_BLOCK
        )
    return out.permute(0, 3, 1, 2)


def admm_step(w: Tensor, v: Tensor, of_y: Tensor, of_w: Tensor) -> None:
    """Compute w <- of_y + (1 - 2 of_w) v + of_w w in one pass; all but v are contiguous."""
    from recollect.accelerate.tf32x3 import kernels

    with _on(w.device):
        launch_kernel(kernels.admm_step, _blocks(w), w, contiguous(v), of_y, of_w, w.numel(), BLOCK=ELEMENTWISE_BLOCK)


def _blocks(out: Tensor) -> tuple[int]:
    return (-(-out.numel() // ELEMENTWISE_BLOCK),)


def _on(device: torch.device) -> AbstractContextManager[Any]:
    """Launch kernels on this device; switching costs time, so only from another one."""
    if torch.cuda.current_device() == device.index:
        return nullcontext()
    return torch.cuda.device(device)
