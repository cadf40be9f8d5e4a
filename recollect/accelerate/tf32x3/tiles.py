"""How a product is cut up for a GPU: into tiles of its outcome, and those of few images along their sums too, which
would leave most of the GPU idle otherwise."""

from __future__ import annotations

from typing import NamedTuple

ROWS = 64  # of most tiles: fewer images take as long
MANY_ROWS = 256  # from which on tiles may be large
SHORTEST = 3  # chunks of a part
START = 4  # chunks that take as long as beginning and ending with a tile


class Tile(NamedTuple):
    """The part of an outcome that one of the kernel's programs computes."""

    rows: int
    columns: int
    at_once: int  # tiles that a processor works on

    @property
    def warps(self) -> int:
        return self.rows // 16

    def number(self, rows: int, columns: int, phases: int) -> int:
        return -(-rows // self.rows) * -(-columns // self.columns) * phases


SLIM, NARROW, SMALL = Tile(ROWS, 16, 4), Tile(ROWS, 32, 4), Tile(ROWS, 64, 3)
TALL, WIDE = Tile(2 * ROWS, 64, 2), Tile(ROWS, 128, 2)
TALL_TIME = 1.7  # of a small one's: half a tall one takes less, but they are shared out less evenly


class Tiling(NamedTuple):
    tile: Tile
    chunks_each: int  # of a part of the sum
    parts: int


def tiling(rows: int, columns: int, chunks: int, processors: int, phases: int = 1) -> Tiling:
    """How large tiles are, and into how many parts the sum is cut so that all processors have some, once or twice."""
    tile = tile_for(rows, columns, processors, phases)
    tiles, at_once = tile.number(rows, columns, phases), tile.at_once * processors

    def in_parts(turns: int) -> Tiling:
        parts = max(1, min(turns * at_once // tiles, chunks // SHORTEST))
        each = -(-chunks // parts)
        return Tiling(tile, each, -(-chunks // each))

    def chunks_one_after_another(cut: Tiling) -> int:
        return -(-tiles * cut.parts // at_once) * (cut.chunks_each + START)

    return min(in_parts(1), in_parts(2), key=chunks_one_after_another)


def tile_for(rows: int, columns: int, processors: int, phases: int) -> Tile:
    if columns <= NARROW.columns:
        return SLIM if columns <= SLIM.columns else NARROW
    if rows <= MANY_ROWS:
        return SMALL
    if columns >= WIDE.columns:
        return WIDE
    small, tall = (-(-tile.number(rows, columns, phases) // processors) for tile in (SMALL, TALL))  # of a processor
    return TALL if tall * TALL_TIME < small else SMALL
