"""Objects pass through, and an opened model is an autoencoder like any other."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from recollect import InputError
from recollect.models import Adapted, open_model, probe_model
from tests.models.making import images, script, tiny


def test_a_module_passes_through_and_a_function_is_wrapped() -> None:
    model = tiny()
    assert open_model(model) is model
    assert open_model(model, device="cpu") is model
    assert torch.equal(open_model(lambda x: x / 2, device="cpu")(images()), images() / 2)
    with pytest.raises(InputError, match=r"got an int"):
        open_model(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"weights go with package\.module:factory"):
        open_model(model, weights="w.safetensors")
    with pytest.raises(InputError, match="The device nonsense cannot be used"):
        open_model(model, device="nonsense")


def test_derivatives_pass_through_an_adapted_file(tmp_path: Path) -> None:
    opened = open_model(script(tiny(), tmp_path / "m.pt"), input_range="-1,1", batch=2)
    x = images(3).requires_grad_()
    opened(x).sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().min()) > 0


def test_diffusers_autoencoder_kl() -> None:
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, layers_per_block=1)
    with pytest.raises(InputError, match="--output sample"):
        probe_model(open_model(model), images())
    assert probe_model(open_model(model, output="sample", input_range="-1,1"), images()).deterministic


def test_a_function_may_live_on_a_device_of_its_own() -> None:
    def there(x: Tensor) -> Tensor:
        assert x.device.type == "meta"
        return x

    opened = open_model(there, device="meta")
    assert isinstance(opened, Adapted)
    with pytest.raises(NotImplementedError):  # meta tensors have no values to copy to the CPU
        opened(images())
