"""Pictures of signals and rows, as small as those of images: signals as lines, rows as bars."""

from __future__ import annotations

import numpy as np
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from recollect.palette import PALETTE

HEIGHT, WIDTH = 64, 128  # pixels of a picture
FINER = 3  # lines are drawn so many times larger and averaged, which makes them smooth
MARGIN = 2  # pixels above 1 and below 0


def draw_values(values: Tensor) -> np.ndarray:
    """Draw signals (N x C x L) as lines, a colour a channel, or rows (N x d) as bars: 8-bit, N x H x W x 3."""
    draw = _bars if values.ndim == 2 else _lines
    in_range = values.detach().float().cpu().nan_to_num(0.0).clamp(0, 1).numpy()
    return np.stack([draw(sample) for sample in in_range])


def draw_bands(values: Tensor) -> Tensor:
    """Draw one value a position as bands, a stripe a channel: N x H x W, in the range that the values have."""
    stripes = values if values.ndim == 3 else values[:, None]
    return adaptive_avg_pool2d(stripes[:, None].float(), (HEIGHT, WIDTH))[:, 0]


def _lines(channels: np.ndarray) -> np.ndarray:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (WIDTH * FINER, HEIGHT * FINER), "white")
    canvas = ImageDraw.Draw(picture)
    colours = [colour.light for colour in PALETTE.values()]
    across = np.linspace(0, WIDTH * FINER - 1, max(2, channels.shape[1]))
    for number, channel in enumerate(channels):
        points = list(zip(across.tolist(), _from_top(channel).tolist(), strict=False))
        points = points if len(points) > 1 else [points[0], (across[-1], points[0][1])]
        canvas.line(points, fill=colours[number % len(colours)], width=FINER + 1)
    return np.asarray(picture.reduce(FINER))


def _from_top(values: np.ndarray) -> np.ndarray:
    """Return where values from 0 to 1 are, in pixels of the large picture from its top."""
    return (MARGIN + (1 - values) * (HEIGHT - 1 - 2 * MARGIN)) * FINER


def _bars(row: np.ndarray) -> np.ndarray:
    """Draw a bar a column, or the mean of several where there are more columns than pixels."""
    if len(row) > WIDTH:
        row = np.array([part.mean() for part in np.array_split(row, WIDTH)])
    column = np.arange(WIDTH) * len(row) // WIDTH
    tops = _from_top(row)[column] / FINER
    filled = np.arange(HEIGHT)[:, None] >= np.floor(tops)
    if 3 * len(row) <= WIDTH:  # with room between bars, they are told apart
        filled[:, np.flatnonzero(np.diff(column, append=-1))] = False
    colour = np.array([int(PALETTE["blue"].light[at : at + 2], 16) for at in (1, 3, 5)], np.uint8)
    return np.where(filled[..., None], colour, np.uint8(255))
