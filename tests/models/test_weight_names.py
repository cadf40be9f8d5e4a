from pathlib import Path

import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.models import open_model
from recollect.models.weight_names import fit_names
from tests.models.making import Tiny, agree, tiny

FILE = Path("w.ckpt")


def named(prefix: str, *others: str) -> dict[str, Tensor]:
    weights = {f"{prefix}{name}": value for name, value in tiny().state_dict().items()}
    return weights | {other: torch.ones(1) for other in others}


@pytest.mark.parametrize("prefix", ["model.", "module.", "_orig_mod.", "system.net.module.", "model._orig_mod."])
def test_a_common_prefix_is_stripped_and_said(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    fitted = fit_names(named(prefix, "loss.0.weight", "scale"), Tiny(), FILE, None)
    assert fitted.keys() == tiny().state_dict().keys()
    assert caplog.messages == [
        f"The prefix '{prefix}' was stripped from the names of the weights in w.ckpt. Not used: loss.0.weight, scale."
    ]


def test_names_that_fit_stay_and_names_that_do_not_are_left_to_the_loader(caplog: pytest.LogCaptureFixture) -> None:
    more = "model.further.weight"  # a layer that the network lacks: it may have been built too small
    for weights in (named(""), named("", "extra"), named("model.", more), {"a": torch.ones(1)}):
        assert fit_names(weights, Tiny(), FILE, None) == weights
    assert not caplog.messages


def test_of_two_networks_in_one_file_the_user_chooses(tmp_path: Path) -> None:
    changed = {f"ema.{name}": value + 1 for name, value in tiny().state_dict().items()}
    torch.save({"state_dict": named("model.") | changed, "epoch": 3}, tmp_path / "two.ckpt")
    factory = "tests.models.making:Tiny"
    with pytest.raises(InputError, match=r"more than once \(ema\., model\.\); say which, .*--weights-key ema\.\)"):
        open_model(factory, weights=tmp_path / "two.ckpt")
    assert agree(open_model(factory, weights=tmp_path / "two.ckpt", weights_key="model."), tiny())
    assert not agree(open_model(factory, weights=tmp_path / "two.ckpt", weights_key="ema."), tiny())
    with pytest.raises(InputError, match="do not fit Tiny: Missing key"):
        open_model(factory, weights=tmp_path / "two.ckpt", weights_key="net.")
