from pathlib import Path

import pytest
import torch

from recollect import InputError
from recollect.checkpoints import write_tensors
from recollect.models import open_model
from tests.models.making import agree, onnx_convolution, script, tiny


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".ckpt"])
def test_a_factory_with_weights(code: Path, suffix: str, nested: bool) -> None:
    torch.manual_seed(77)
    trained = type(tiny())().eval()
    path = code / f"w{suffix}"
    if suffix == ".safetensors":
        write_tensors(path, trained.state_dict(), {})
    else:
        compiled = {f"module.{name}": tensor for name, tensor in trained.state_dict().items()}
        torch.save({"state_dict": compiled, "epoch": 3} if nested else trained.state_dict(), path)
    assert agree(open_model("own_code:Tiny", weights=path), trained)


def test_weights_that_do_not_fit(code: Path) -> None:
    torch.save({"a": torch.ones(1)}, "a.pt")
    with pytest.raises(InputError, match="do not fit Tiny: Missing key"):
        open_model("own_code:Tiny", weights="a.pt")
    torch.save({"ema": {"a": torch.ones(1)}, "model": {"a": torch.ones(1)}}, "two.pt")
    with pytest.raises(InputError, match=r"several sets of weights \(ema, model\).*--weights-key ema"):
        open_model("own_code:Tiny", weights="two.pt")
    with pytest.raises(InputError, match=r"it has ema, model"):
        open_model("own_code:Tiny", weights="two.pt", weights_key="net")
    torch.save(3, "three.pt")
    with pytest.raises(InputError, match=r"no state dict .* an int"):
        open_model("own_code:Tiny", weights="three.pt")


def test_weights_without_a_network_say_what_is_missing(tmp_path: Path) -> None:
    write_tensors(tmp_path / "w.safetensors", tiny().state_dict(), {})
    torch.save(tiny().state_dict(), tmp_path / "w.pt")
    for name in ("w.safetensors", "w.pt"):
        with pytest.raises(InputError, match=r"weights without a network.*package.module:factory"):
            open_model(tmp_path / name)


def test_a_file_that_holds_no_weights_is_named(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "bare.pt")
    with pytest.raises(InputError, match=r"holds no state dict \(names and tensors\); it holds epoch"):
        open_model(tmp_path / "bare.pt")
    with pytest.raises(InputError, match=r"There is no file of weights .*absent\.pt"):
        open_model("tests.models.making:tiny", weights=tmp_path / "absent.pt")
    whole = script(tiny(), tmp_path / "whole.pt"), onnx_convolution(tmp_path / "whole.onnx")[0]
    for path in whole:
        with pytest.raises(InputError, match=r"holds no weights but a whole model .*open it by itself"):
            open_model("tests.models.making:tiny", weights=path)
