import pytest
import torch

from recollect import InputError, mask
from recollect.degradation import all_erased
from recollect.methods import DDNM, DDNMOfModel
from tests.auditing.making import images
from tests.diffusion.making import memory_of


def test_it_is_ddnm_with_the_audited_model_and_its_evaluations_are_counted() -> None:
    stored = images(3, 1)
    denoiser, keep = memory_of(stored), mask("half", stored.shape, count=3)
    y = keep.apply(stored.pixels)
    settings = {"steps": 5, "draws": 2, "spacing": "even"}
    found = DDNMOfModel(**settings)(denoiser.at(0.2), y, keep)  # type: ignore[arg-type]
    expected = DDNM(denoiser, eta=1.0, **settings)(None, y, keep)  # type: ignore[arg-type]
    assert torch.equal(found.estimate, expected.estimate)
    assert found.steps.tolist() == [10] * 3
    assert DDNMOfModel.most_passes(1, 50) == 200


def test_other_models_and_unknown_damage_are_refused() -> None:
    stored = images(2, 1)
    with pytest.raises(InputError, match="ddnm-model is for diffusion models"):
        DDNMOfModel()(lambda x: x, stored.pixels, all_erased(stored.pixels))
    with pytest.raises(InputError, match="needs the true degradation"):
        DDNMOfModel()(memory_of(stored).at(0.2), stored.pixels)
