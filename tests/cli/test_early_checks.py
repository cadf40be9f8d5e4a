"""Mistakes are refused before torch is imported, in the sentences that the import would give."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.cli import denoiser, paper, train
from recollect.cli.early_checks import (
    check_choice,
    check_experiments,
    check_folder,
    check_inputs,
    check_masks,
    check_methods,
    check_network,
)
from recollect.diffusion.recipe import SCHEDULES
from recollect.errors import InputError
from recollect.paper.scales import scale_named
from recollect.training import recipe


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_methods("blind, nonsense"), "There is no method 'nonsense'"),
        (lambda: check_masks("block,nonsense"), "There is no mask 'nonsense'.*dust.*blur:1.5"),
        (lambda: check_masks("block,nowhere.png"), "There is no mask file nowhere.png"),
        (lambda: check_masks("random:130%"), r"must lie in \[0, 1\], got 1.3"),
        (lambda: check_choice("scale", "huge", paper.SCALES), "There is no scale 'huge'; choose from small, full"),
        (lambda: check_network("nonsense"), "There is no network 'nonsense'; choose from fc, unet"),
        (lambda: check_experiments("accurate,nonsense"), "There is no experiment 'nonsense'; choose from training"),
        (lambda: check_inputs("nothere.pt", "photos?count=2", None), "nothere.pt does not exist"),
        (lambda: check_inputs("/not/here", None), "/not/here does not exist"),
        (lambda: check_inputs("a:b", "nosuch:x", None), "nosuch"),
        (lambda: check_inputs("a:b", "photos?count=2", "nosuch:x"), "nosuch"),
        (lambda: check_inputs("a:b", "folder:not/here"), "There is no folder not/here"),
        (lambda: check_inputs("a:b", None, canaries="not/here"), "not/here holds no canaries"),
        (lambda: check_inputs("a:b", "table:not/here.csv"), "not/here.csv"),
        (lambda: check_folder(Path(__file__)), "is a file; results need a folder"),
    ],
)
def test_a_mistake_is_one_sentence(check: Callable[[], None], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check()


def test_choices_are_those_of_the_modules() -> None:
    assert train.OPTIMIZERS == recipe.OPTIMIZERS
    assert tuple(SCHEDULES) == denoiser.SCHEDULES
    assert [scale_named(name).name for name in paper.SCALES] == ["small", "full"]


def test_what_may_be_right_is_left_to_the_audit(tmp_path: Path) -> None:
    model, picture = tmp_path / "model.pt", tmp_path / "mine.png"
    model.touch()
    picture.touch()
    check_methods("blind,known")
    check_methods(None)
    check_masks(f"all,half,random:30%,columns:0+2,blur:1.5,{picture}")
    check_network("unet")
    check_experiments("all")
    check_experiments("accurate, thresholds")
    check_inputs(str(model), "photos?count=2", "photos?count=2&part=control")
    check_inputs("package.module:factory", None, None)
    check_inputs("someone/on-the-hub", "tests.cli.running:Planted")
    check_folder(tmp_path)
    check_folder(tmp_path / "new")
