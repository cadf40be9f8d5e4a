from hypothesis import given
from hypothesis import strategies as st

from recollect.accelerate.tf32x3.tiles import FEWEST_CHUNKS, NARROW, SLIM, SMALL, TALL, WIDE, Tiling, tile_for, tiling

PROCESSORS = 132


@given(rows=st.integers(1, 10**6), columns=st.integers(1, 30_000), chunks=st.integers(1, 1000), scale=st.integers(1, 2))
def test_splits_cover_the_sum_and_keep_processors_busy_twice_at_most(
    rows: int, columns: int, chunks: int, scale: int
) -> None:
    tile, each, splits = tiling(rows, columns, chunks, PROCESSORS, scale**2)
    assert (splits - 1) * each < chunks <= splits * each
    if splits > 1:
        assert each >= FEWEST_CHUNKS
        tiles = -(-rows // tile.rows) * -(-columns // tile.columns) * scale**2
        assert splits * tiles <= 2 * tile.resident * PROCESSORS


def test_no_tile_is_wider_than_it_need_be() -> None:
    assert [tile_for(9, columns, PROCESSORS, 1) for columns in (1, 16, 17, 32, 33, 500)] == [
        SLIM, SLIM, NARROW, NARROW, SMALL, SMALL,
    ]  # fmt: skip
    assert [tile_for(10**6, columns, PROCESSORS, 1) for columns in (16, 32, 33, 127, 128)] == [
        SLIM, NARROW, TALL, TALL, WIDE,
    ]  # fmt: skip


def test_few_images_are_split_and_many_get_large_tiles() -> None:
    assert tiling(64, 1024, 384, PROCESSORS) == Tiling(SMALL, 16, 24)
    assert tiling(512, 1024, 32, PROCESSORS) == Tiling(WIDE, 8, 4)
    assert tiling(4096, 1024, 384, PROCESSORS) == Tiling(WIDE, 384, 1)
    assert tiling(50 * 1024, 64, 18, PROCESSORS) == Tiling(TALL, 18, 1)
    assert tiling(24 * 1024, 64, 18, PROCESSORS) == Tiling(SMALL, 18, 1)  # 3 a processor; 2 tall ones take longer
    assert tiling(1024, 3, 18, PROCESSORS) == Tiling(SLIM, 3, 6)


def test_processors_have_work_twice_where_once_leaves_many_idle() -> None:
    assert tiling(3200, 256, 72, PROCESSORS) == Tiling(WIDE, 15, 5)  # 100 tiles: 500 splits for 264 at a time, not 200
    assert tiling(3200, 256, 36, PROCESSORS) == Tiling(WIDE, 18, 2)  # short splits cost more to begin
