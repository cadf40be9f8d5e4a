from recollect.auditing.progress import no_progress
from tests.auditing.making import small_audit


def test_progress_moves_within_a_cell_and_ends_at_the_end() -> None:
    reported: list[tuple[str, float, float]] = []
    small_audit(masks="half", chunk=3, progress=lambda *at: reported.append(at))
    assert {total for _, _, total in reported} == {10}
    assert any(done % 1 for _, done, _ in reported)
    assert [done for _, done, _ in reported] == sorted(done for _, done, _ in reported)
    assert reported[-1][1] == 10
    assert "train / half / blind" in {doing for doing, _, _ in reported}


def test_a_search_for_settings_is_reported_first() -> None:
    reported: list[str] = []
    small_audit(masks="half", methods="blind", gamma=None, progress=lambda doing, _done, _total: reported.append(doing))
    assert reported[:3] == ["choosing gamma and start"] * 3


def test_nothing_is_reported_where_nobody_listens() -> None:
    no_progress("anything", 1, 2)
