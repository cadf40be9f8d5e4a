"""One new file adds an experiment: the folder is the list."""

from pathlib import Path

import pytest

import recollect.paper.experiments as package
from recollect import InputError
from recollect.paper.experiments import EXPERIMENTS, experiments_named

SHARED = {"__init__", "perfect_fit", "moderate"}  # files without an experiment of their own


def test_every_file_of_the_folder_is_an_experiment() -> None:
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - SHARED
    assert len(EXPERIMENTS) == len(files)


def test_every_experiment_shows_something() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.summary
        assert experiment.location
        assert experiment.table or experiment.pictures or experiment.name == "thresholds"


def test_experiments_are_named_with_commas_or_all() -> None:
    assert [experiment.name for experiment in experiments_named("psnr, accurate")] == ["psnr", "accurate"]
    assert experiments_named("all") == list(EXPERIMENTS.values())
    assert experiments_named("all")[0].name == "training"
    with pytest.raises(InputError, match="There is no experiment 'acurate'; choose from training, accurate"):
        experiments_named("acurate")
    with pytest.raises(InputError, match="Name at least one experiment"):
        experiments_named(" , ")
