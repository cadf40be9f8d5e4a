from dataclasses import replace

from recollect.paper.experiment import Experiment, Pictures
from recollect.paper.scales import SMALL
from tests.paper.making import FIT, make_experiment


def unused(*_: object) -> dict[str, object]:
    raise AssertionError


def test_each_training_is_listed_once() -> None:
    other = replace(FIT, activation="prelu")
    pictures = Pictures(lambda _scale: FIT, unused, unused)  # type: ignore[arg-type]
    experiment = replace(make_experiment(), trainings=lambda _scale: [other, FIT], pictures=pictures)
    assert experiment.fits(SMALL) == [FIT, other]


def test_pictures_without_weights_need_no_training() -> None:
    pictures = Pictures(lambda _scale: FIT, unused, unused, needs_weights=False)  # type: ignore[arg-type]
    assert Experiment("a", "b", "c", pictures=pictures).fits(SMALL) == []
    assert Experiment("a", "b", "c").cells(SMALL) == ()
