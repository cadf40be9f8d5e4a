import torch

from recollect import Blind, Erasure, Recovery, Stop
from recollect.recovery import progress_of_part


def recovery() -> Recovery:
    keep = torch.tensor([True, False, True]).view(3, 1, 1, 1)
    counts = torch.tensor([4, 2, 100])
    stop = torch.tensor([Stop.CONVERGED, Stop.CYCLE, Stop.CONVERGED])
    return Recovery(torch.arange(3.0).view(3, 1, 1, 1), Erasure(keep), counts, counts * 40, stop)


def test_every_stop_says_why_in_words() -> None:
    assert all(len(stop.description) > 5 for stop in Stop)
    for stop in (Stop.CONVERGED, Stop.CYCLE, Stop.LIMIT, Stop.DIVERGED):
        assert stop.description.startswith(stop.name.lower())


def test_str_counts_the_reasons() -> None:
    text = str(recovery())
    assert "Recovery of 3 images:" in text
    assert f"2 {Stop.CONVERGED.description}" in text
    assert f"1 {Stop.CYCLE.description}" in text


def test_some_of_the_images() -> None:
    chosen = recovery()[[2, 0]]
    assert chosen.estimate.flatten().tolist() == [2, 0]
    assert chosen.degradation.keep.flatten().tolist() == [True, True]  # type: ignore[union-attr]
    assert chosen.stops == [Stop.CONVERGED, Stop.CONVERGED]


def test_one_image_is_still_a_batch() -> None:
    one = recovery()[1]
    assert len(one) == 1
    assert one.estimate.shape == (1, 1, 1, 1)
    assert one.stops == [Stop.CYCLE]
    assert [len(r) for r in recovery()] == [1, 1, 1]  # type: ignore[attr-defined]


def test_methods_are_immutable_and_compare_by_their_settings() -> None:
    assert Blind(gamma=0.1) == Blind(gamma=0.1) != Blind(gamma=0.2)
    assert len({Blind(), Blind()}) == 1


def test_a_part_reports_its_progress_as_that_of_the_whole() -> None:
    reported: list[tuple[int, int]] = []
    report = progress_of_part(lambda done, total: reported.append((done, total)), 10, 30)
    assert report is not None
    report(5, 10)
    assert reported == [(15, 30)]
    assert progress_of_part(None, 10, 30) is None
