"""Kernels for a GPU: the product of a layer, images doubled and halved, and what ADMM does between two calls of f.

The product is that of linear layers, and of convolutions as products with shifted images. Each factor is the sum of two
TF32 numbers, and the product of the two small ones is left out: that and what the two cannot hold is about twice what
float32 rounds off a product. Tensor cores cut off what a sum cannot hold, always with one sign; so they add up one
chunk at a time, and float32 adds the chunks.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

VARYING = ["rows", "height", "width", "rows_down", "rows_across", "taps_across", "stride", "padding_down"]
VARYING += ["padding_across", "scale", "chunks", "chunks_each"]  # no kernel of their own for 1 or multiples of 16


@triton.jit
def activate(x, slope, ACTIVATION: tl.constexpr):
    """As PyTorch does it, softplus with its beta of 1 and threshold of 20."""
    if ACTIVATION == "leaky_relu":
        return tl.where(x > 0, x, x * slope)
    else:
        return tl.where(x > 20, x, libdevice.log1p(libdevice.exp(x)))


@triton.jit(do_not_specialize=VARYING)
def product(
    x,  # images x height x width x channels
    weight,  # phases x columns x taps x channels, these filled up with zeros to whole chunks: what TF32 holds of it
    weight_rest,  # what is left
    bias,  # or None
    out,  # parts x pixels x columns
    activated,  # as `out`, after the activation
    slope,  # of a leaky ReLU
    rows,  # pixels of the outcome in each phase, or images of one pixel
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
    scale,  # where images are doubled first, 2: pixels of the outcome are in four phases, each with taps of its own
    chunks,
    chunks_each,  # of a part of the sum
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
    FLAT: tl.constexpr,  # images of one pixel and one tap: all that is about places is left out
    ACTIVATION: tl.constexpr,  # its name, or None
):
    """A tile of the outcome, over one part of the sum."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tiles = tl.num_programs(1) // (scale * scale)
    column = tl.program_id(1) % tiles * COLUMNS + tl.arange(0, COLUMNS)
    phase = tl.program_id(1) // tiles
    part = tl.program_id(2)
    term = tl.arange(0, CHUNK)
    pixel_of_out = row
    if not FLAT:
        line, row_across = row // rows_across, row % rows_across
        phase_down, phase_across = phase // scale, phase % scale
        top = line % rows_down * stride - padding_down + phase_down
        left = row_across * stride - padding_across + phase_across
        corner = (line // rows_down * height + top) * width + left
        pixel_of_out = ((line * scale + phase_down) * rows_across + row_across) * scale + phase_across
        chunks_a_tap = (channels + CHUNK - 1) // CHUNK
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    if bias is not None:  # noqa: SIM102  # known when compiled, unlike the other
        if part == 0:
            total += tl.load(bias + column, mask=column < columns, other=0.0)[None, :]
    for chunk in range(part * chunks_each, tl.minimum((part + 1) * chunks_each, chunks)):
        inside, pixel = row < rows, row
        channel = chunk * CHUNK + term
        if not FLAT:
            tap = chunk // chunks_a_tap
            down, across = tap // taps_across, tap % taps_across
            channel = chunk % chunks_a_tap * CHUNK + term
            inside &= (top + down >= 0) & (top + down < height) & (left + across >= 0) & (left + across < width)
            pixel = corner + down * width + across
        known = inside[:, None] & (channel < channels)[None, :]
        a = tl.load(x + pixel[:, None] * channels + channel[None, :], mask=known, other=0.0)
        there = (phase * columns + column)[None, :] * (chunks * CHUNK) + (chunk * CHUNK + term)[:, None]
        b = tl.load(weight + there, mask=(column < columns)[None, :], other=0.0)
        b_rest = tl.load(weight_rest + there, mask=(column < columns)[None, :], other=0.0)
        upper = ((a.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)  # rounded to TF32
        sum_of_chunk = tl.dot(a - upper, b, input_precision="tf32")
        sum_of_chunk = tl.dot(upper, b_rest, sum_of_chunk, input_precision="tf32")
        total += tl.dot(upper, b, sum_of_chunk, input_precision="tf32")
    place = (part * rows * scale * scale + pixel_of_out)[:, None] * columns + column[None, :]
    known = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(out + place, total, mask=known)
    if ACTIVATION is not None:
        tl.store(activated + place, activate(total, slope, ACTIVATION), mask=known)


@triton.jit(do_not_specialize=["size", "parts"])
def add_up(
    values, out, activated, slope, size, parts, BLOCK: tl.constexpr, TOGETHER: tl.constexpr, ACTIVATION: tl.constexpr
):
    """The sum of all parts, each `size` values, in order."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, parts, TOGETHER):  # so many are on their way at a time
        for part in tl.static_range(TOGETHER):
            there = (place < size) & (first + part < parts)
            total += tl.load(values + (first + part) * size + place, mask=there, other=0.0)
    tl.store(out + place, total, mask=place < size)
    if ACTIVATION is not None:
        tl.store(activated + place, activate(total, slope, ACTIVATION), mask=place < size)


@triton.jit
def activate_all(values, activated, slope, size, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    """An activation alone."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(values + place, mask=place < size)
    tl.store(activated + place, activate(x, slope, ACTIVATION), mask=place < size)


@triton.jit
def next_point(w, v, of_y, of_w, size, BLOCK: tl.constexpr):
    """w <- of_y + (1 - 2 of_w) v + of_w w: what ADMM does between two calls of the network, for erasures."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = place < size
    kept = tl.load(of_w + place, mask=known)
    half = tl.load(of_y + place, mask=known) + (1 - 2 * kept) * tl.load(v + place, mask=known)
    tl.store(w + place, half + kept * tl.load(w + place, mask=known), mask=known)


@triton.jit
def twice(x, out, size, width, channels, BLOCK: tl.constexpr):
    """Every pixel of x, images x height x width x channels, twice down and across."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel, pixel = place % channels, place // channels
    line, across = pixel // (2 * width), pixel % (2 * width)
    values = tl.load(x + (line // 2 * width + across // 2) * channels + channel, mask=place < size)
    tl.store(out + place, values, mask=place < size)


@triton.jit
def largest_of_four(x, out, size, height, width, channels, BLOCK: tl.constexpr):
    """Of each two by two pixels of x, images x height x width x channels, as PyTorch takes it: the first of equal ones,
    and what is no number if there is such."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = place < size
    channel, pixel = place % channels, place // channels
    line, across = pixel // (width // 2), pixel % (width // 2)
    top = line // (height // 2) * height + line % (height // 2) * 2
    corner = x + (top * width + across * 2) * channels + channel
    largest = tl.load(corner, mask=known)
    for other in tl.static_range(1, 4):
        value = tl.load(corner + (other // 2 * width + other % 2) * channels, mask=known)
        largest = tl.where((value > largest) | (value != value), value, largest)
    tl.store(out + place, largest, mask=known)


@triton.jit(do_not_specialize=VARYING)
def spread_taps(
    x,  # images x height x width x channels, with these strides
    out,  # pixels of the outcome x terms: every tap's channels, filled up with zeros
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
    """What all taps see, side by side."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    term, row = place % TERMS, place // TERMS
    tap, channel = term // channels, term % channels
    line, row_across = row // rows_across, row % rows_across
    down = line % rows_down * stride - padding_down + tap // taps_across
    across = row_across * stride - padding_across + tap % taps_across
    inside = (term < terms) & (down >= 0) & (down < height) & (across >= 0) & (across < width)
    there = line // rows_down * to_image + down * to_line + across * to_pixel + channel * to_channel
    tl.store(out + place, tl.load(x + there, mask=inside & (place < size), other=0.0), mask=place < size)


@triton.jit(do_not_specialize=VARYING)
def gather_taps(
    products,  # images x height x width x every tap's columns, and more
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
    of_a_pixel,  # products
    padding_down,
    padding_across,
    TAPS_DOWN: tl.constexpr,
    TAPS_ACROSS: tl.constexpr,
    BLOCK: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """The sum over the taps, in order, of their products with the pixels that they see."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column, row = place % columns, place // columns
    line, row_across = row // rows_across, row % rows_across
    first, top, left = line // rows_down * height, line % rows_down - padding_down, row_across - padding_across
    total = tl.load(bias + column, mask=place < size, other=0.0)
    for tap in tl.static_range(TAPS_DOWN * TAPS_ACROSS):
        down, across = top + tap // TAPS_ACROSS, left + tap % TAPS_ACROSS
        inside = (place < size) & (down >= 0) & (down < height) & (across >= 0) & (across < width)
        there = ((first + down) * width + across) * of_a_pixel + tap * columns + column
        total += tl.load(products + there, mask=inside, other=0.0)
    tl.store(out + place, total, mask=place < size)
    if ACTIVATION is not None:
        tl.store(activated + place, activate(total, slope, ACTIVATION), mask=place < size)
