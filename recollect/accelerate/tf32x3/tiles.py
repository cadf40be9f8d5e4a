"""How a matrix multiplication is divided on a GPU: into tiles of its output, and for few images by split-K as well.

Without split-K, few images would leave most of the GPU idle.
"""

from __future__ import annotations

from typing import NamedTuple

ROWS = 64  # of most tiles: fewer images take as long
MANY_ROWS = 256  # from which on tiles may be large
FEWEST_CHUNKS = 3  # of a split
OVERHEAD_CHUNKS = 4  # that take as long as beginning and ending a tile


class Tile(NamedTuple):
    """The part of an output that one program of the kernel computes."""

    rows: int
    columns: int
    resident: int  # tiles that a processor works on at once

    @property
    def warps(self) -> int:
        return self.rows // 16

    def number_for(self, rows: int, columns: int, phases: int) -> int:
        """Count the tiles that cover an output."""
        return -(-rows // self.rows) * -(-columns // self.columns) * phases


SLIM, NARROW, SMALL = Tile(ROWS, 16, 4), Tile(ROWS, 32, 4), Tile(ROWS, 64, 3)
TALL, WIDE = Tile(2 * ROWS, 64, 2), Tile(ROWS, 128, 2)
TALL_TIME = 1.7  # of a small one's: half a tall one takes less, but they are shared out less evenly


class Tiling(NamedTuple):
    tile: Tile
    chunks_each: int  # of a split
    splits: int


def tiling(rows: int, columns: int, chunks: int, processors: int, phases: int = 1) -> Tiling:
    """Choose the tile, and as many splits of the sum as give all processors work, once or twice."""
    tile = tile_for(rows, columns, processors, phases)
    tiles, resident = tile.number_for(rows, columns, phases), tile.resident * processors

    def split(turns: int) -> Tiling:
        splits = max(1, min(turns * resident // tiles, chunks // FEWEST_CHUNKS))
        each = -(-chunks // splits)
        return Tiling(tile, each, -(-chunks // each))

    def chunks_in_sequence(candidate: Tiling) -> int:
        return -(-tiles * candidate.splits // resident) * (candidate.chunks_each + OVERHEAD_CHUNKS)

    return min(split(1), split(2), key=chunks_in_sequence)


def tile_for(rows: int, columns: int, processors: int, phases: int) -> Tile:
    """Choose a tile no wider than the output, and a large one only where there are many rows."""
    if columns <= SLIM.columns:
        return SLIM
    if columns <= NARROW.columns:
        return NARROW
    if rows <= MANY_ROWS:
        return SMALL
    if columns >= WIDE.columns:
        return WIDE
    small, tall = (-(-tile.number_for(rows, columns, phases) // processors) for tile in (SMALL, TALL))  # of a processor
    return TALL if tall * TALL_TIME < small else SMALL
