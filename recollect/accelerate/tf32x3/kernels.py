"""Triton kernels: a layer's matrix multiplication, upsampling, max-pooling, and ADMM's step between two calls of f.

The matrix multiplication is that of a linear layer, or of a convolution as an implicit GEMM over shifted images. Each
factor is the sum of two TF32 numbers. The product of the two small ones is left out: this error and that of the split
are about twice the rounding of float32. Tensor cores truncate their sums, which biases long ones; so they sum up one
chunk at a time, and float32 adds the chunks.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

VARYING = ["rows", "height", "width", "rows_down", "rows_across", "taps_across", "stride", "padding_down"]
VARYING += ["padding_across", "scale", "chunks", "chunks_each"]  # Triton compiles no variant for 1 or multiples of 16


@triton.jit
def activate(x, slope, ACTIVATION: tl.constexpr):
    """Apply an activation as PyTorch does; softplus has a beta of 1 and a threshold of 20."""
    if ACTIVATION == "leaky_relu":
        return tl.where(x > 0, x, x * slope)
    else:
        return tl.where(x > 20, x, libdevice.log1p(libdevice.exp(x)))


@triton.jit(do_not_specialize=VARYING)
def matmul(
    x,  # images x height x width x channels
    weight,  # phases x columns x taps x channels, padded with zeros to whole chunks: rounded to TF32
    weight_rest,  # the weight less that, in TF32 too
    bias,  # or None
    out,  # splits x pixels x columns
    activated,  # as `out`, after the activation
    slope,  # of a leaky ReLU
    rows,  # output pixels of each phase, or images of one pixel
    columns,
    channels,
    height,
    width,
    rows_down,  # of an image
    rows_across,
    taps_across,
    stride,
    padding_down,
    padding_across,
    scale,  # 2 if x is upsampled first: output pixels are in four phases, each with its own taps
    chunks,
    chunks_each,  # of a split
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
    FLAT: tl.constexpr,  # images of one pixel and one tap: pixels need not be located
    ACTIVATION: tl.constexpr,  # its name, or None
):
    """Compute a tile of the output, over one split of the sum (split-K)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tiles = tl.num_programs(1) // (scale * scale)
    column = tl.program_id(1) % tiles * COLUMNS + tl.arange(0, COLUMNS)
    phase = tl.program_id(1) // tiles
    split = tl.program_id(2)
    term = tl.arange(0, CHUNK)
    out_pixel = row
    if not FLAT:
        line, row_across = row // rows_across, row % rows_across
        phase_down, phase_across = phase // scale, phase % scale
        top = line % rows_down * stride - padding_down + phase_down
        left = row_across * stride - padding_across + phase_across
        corner = (line // rows_down * height + top) * width + left
        out_pixel = ((line * scale + phase_down) * rows_across + row_across) * scale + phase_across
        chunks_a_tap = (channels + CHUNK - 1) // CHUNK
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    if bias is not None:  # noqa: SIM102  # decided when compiled, unlike the inner one
        if split == 0:
            total += tl.load(bias + column, mask=column < columns, other=0.0)[None, :]
    for chunk in range(split * chunks_each, tl.minimum((split + 1) * chunks_each, chunks)):
        inside, pixel = row < rows, row
        channel = chunk * CHUNK + term
        if not FLAT:
            tap = chunk // chunks_a_tap
            down, across = tap // taps_across, tap % taps_across
            channel = chunk % chunks_a_tap * CHUNK + term
            inside &= (top + down >= 0) & (top + down < height) & (left + across >= 0) & (left + across < width)
            pixel = corner + down * width + across
        valid = inside[:, None] & (channel < channels)[None, :]
        a = tl.load(x + pixel[:, None] * channels + channel[None, :], mask=valid, other=0.0)
        source = (phase * columns + column)[None, :] * (chunks * CHUNK) + (chunk * CHUNK + term)[:, None]
        b = tl.load(weight + source, mask=(column < columns)[None, :], other=0.0)
        b_rest = tl.load(weight_rest + source, mask=(column < columns)[None, :], other=0.0)
        upper = ((a.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)  # rounded to TF32
        chunk_sum = tl.dot(a - upper, b, input_precision="tf32")
        chunk_sum = tl.dot(upper, b_rest, chunk_sum, input_precision="tf32")
        total += tl.dot(upper, b, chunk_sum, input_precision="tf32")
    offset = (split * rows * scale * scale + out_pixel)[:, None] * columns + column[None, :]
    valid = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(out + offset, total, mask=valid)
    if ACTIVATION is not None:
        tl.store(activated + offset, activate(total, slope, ACTIVATION), mask=valid)


@triton.jit(do_not_specialize=["size", "splits"])
def reduce_split_k(
    values, out, activated, slope, size, splits, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr, ACTIVATION: tl.constexpr
):
    """Sum up all splits, each of `size` values, in order; then apply the activation."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, splits, AT_ONCE):  # so many loads are in flight
        for split in tl.static_range(AT_ONCE):
            valid = (offset < size) & (first + split < splits)
            total += tl.load(values + (first + split) * size + offset, mask=valid, other=0.0)
    tl.store(out + offset, total, mask=offset < size)
    if ACTIVATION is not None:
        tl.store(activated + offset, activate(total, slope, ACTIVATION), mask=offset < size)


@triton.jit
def activate_all(values, activated, slope, size, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    """Apply an activation to all values."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(values + offset, mask=offset < size)
    tl.store(activated + offset, activate(x, slope, ACTIVATION), mask=offset < size)


@triton.jit
def admm_step(w, v, of_y, of_w, size, BLOCK: tl.constexpr):
    """Compute w <- of_y + (1 - 2 of_w) v + of_w w: what ADMM does between two calls of f, for erasures."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = offset < size
    kept = tl.load(of_w + offset, mask=valid)
    half = tl.load(of_y + offset, mask=valid) + (1 - 2 * kept) * tl.load(v + offset, mask=valid)
    tl.store(w + offset, half + kept * tl.load(w + offset, mask=valid), mask=valid)


@triton.jit
def upsample(x, out, size, width, channels, BLOCK: tl.constexpr):
    """Repeat every pixel of x, images x height x width x channels, in both directions."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel, pixel = offset % channels, offset // channels
    line, across = pixel // (2 * width), pixel % (2 * width)
    values = tl.load(x + (line // 2 * width + across // 2) * channels + channel, mask=offset < size)
    tl.store(out + offset, values, mask=offset < size)


@triton.jit
def max_pool(x, out, size, height, width, channels, BLOCK: tl.constexpr):
    """Take the largest of each 2 x 2 pixels of x, images x height x width x channels.

    As in PyTorch, the first of equal values wins, and NaN wins over numbers.
    """
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = offset < size
    channel, pixel = offset % channels, offset // channels
    line, across = pixel // (width // 2), pixel % (width // 2)
    top = line // (height // 2) * height + line % (height // 2) * 2
    corner = x + (top * width + across * 2) * channels + channel
    largest = tl.load(corner, mask=valid)
    for other in tl.static_range(1, 4):
        value = tl.load(corner + (other // 2 * width + other % 2) * channels, mask=valid)
        largest = tl.where((value > largest) | (value != value), value, largest)
    tl.store(out + offset, largest, mask=valid)


@triton.jit(do_not_specialize=VARYING)
def im2col(
    x,  # images x height x width x channels, with these strides
    out,  # output pixels x terms: every tap's channels, padded with zeros
    size,
    rows_down,
    rows_across,
    height,
    width,
    channels,
    terms,
    taps_across,
    stride,
    padding_down,
    padding_across,
    to_image,
    to_line,
    to_pixel,
    to_channel,
    TERMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gather what all taps see of each output pixel, side by side."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    term, row = offset % TERMS, offset // TERMS
    tap, channel = term // channels, term % channels
    line, row_across = row // rows_across, row % rows_across
    down = line % rows_down * stride - padding_down + tap // taps_across
    across = row_across * stride - padding_across + tap % taps_across
    inside = (term < terms) & (down >= 0) & (down < height) & (across >= 0) & (across < width)
    source = line // rows_down * to_image + down * to_line + across * to_pixel + channel * to_channel
    tl.store(out + offset, tl.load(x + source, mask=inside & (offset < size), other=0.0), mask=offset < size)


@triton.jit(do_not_specialize=VARYING)
def col2im(
    taps_of_pixels,  # images x height x width x every tap's columns, padded
    bias,
    out,  # images x down x across x columns
    activated,  # as `out`, after the activation
    slope,
    size,
    rows_down,
    rows_across,
    height,
    width,
    columns,
    row_stride,  # of taps_of_pixels
    padding_down,
    padding_across,
    TAPS_DOWN: tl.constexpr,
    TAPS_ACROSS: tl.constexpr,
    BLOCK: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Sum, in the order of the taps, what each made of the pixel that it sees."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column, row = offset % columns, offset // columns
    line, row_across = row // rows_across, row % rows_across
    first, top, left = line // rows_down * height, line % rows_down - padding_down, row_across - padding_across
    total = tl.load(bias + column, mask=offset < size, other=0.0)
    for tap in tl.static_range(TAPS_DOWN * TAPS_ACROSS):
        down, across = top + tap // TAPS_ACROSS, left + tap % TAPS_ACROSS
        inside = (offset < size) & (down >= 0) & (down < height) & (across >= 0) & (across < width)
        source = ((first + down) * width + across) * row_stride + tap * columns + column
        total += tl.load(taps_of_pixels + source, mask=inside, other=0.0)
    tl.store(out + offset, total, mask=offset < size)
    if ACTIVATION is not None:
        tl.store(activated + offset, activate(total, slope, ACTIVATION), mask=offset < size)
