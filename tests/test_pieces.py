from recollect.pieces import PIECE_BYTES, piece_length, pieces


def test_a_piece_has_a_bounded_size() -> None:
    assert piece_length((3, 32, 32)) == 16384
    assert 4 * 3 * 64 * 64 * piece_length((3, 64, 64)) <= PIECE_BYTES.value


def test_an_image_larger_than_a_piece_is_a_piece_of_its_own() -> None:
    assert piece_length((3, 10_000, 10_000)) == 1


def test_pieces_follow_each_other_and_cover_the_set() -> None:
    cut = list(pieces(40_000, (3, 32, 32)))
    assert [(rows.start, rows.stop) for rows in cut] == [(0, 16384), (16384, 32768), (32768, 40_000)]
