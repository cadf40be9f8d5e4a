from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from recollect import InputError
from recollect.checkpoints import write_tensors
from recollect.diffusion import open_denoiser
from recollect.diffusion.networks import describe, network_for
from recollect.diffusion.own import FILE, FORMAT, write_own


def test_a_denoiser_is_the_same_after_writing_and_opening(tmp_path: Path) -> None:
    network = network_for("residual", (3, 4, 4), 0, width=8, blocks=1)
    write_own(tmp_path, network)
    denoiser, x = open_denoiser(tmp_path), torch.rand(2, 3, 4, 4)
    assert denoiser.shape == (3, 4, 4)
    assert denoiser.card is None
    skip, out, scale, time = denoiser.preconditioning.at(0.3)
    with torch.no_grad():
        expected = skip * x + out * network(scale * x, torch.tensor([time]))
    assert torch.allclose(denoiser.clean(x, 0.3), expected)
    assert not any(w.requires_grad for w in denoiser.parameters())
    with pytest.raises(InputError, match="knows no classes"):
        open_denoiser(tmp_path, label=1)


def test_what_is_no_denoiser_is_refused(tmp_path: Path) -> None:
    network = network_for("residual", (3, 4, 4), 0, width=8, blocks=1)
    write_own(tmp_path, network)
    weights = load_file(tmp_path / FILE)
    save_file(weights, tmp_path / FILE)
    with pytest.raises(InputError, match="but no denoiser of recollect"):
        open_denoiser(tmp_path)
    about = {"format": FORMAT, "network": describe(network)}
    write_tensors(tmp_path / FILE, {k: v for k, v in weights.items() if "last" not in k}, about)
    with pytest.raises(InputError, match="do not fit the network it describes"):
        open_denoiser(tmp_path)
    write_tensors(tmp_path / FILE, {k: v * torch.nan for k, v in weights.items()}, about)
    with pytest.raises(InputError, match="are not finite"):
        open_denoiser(tmp_path)
    (tmp_path / FILE).write_bytes(b"half a file")
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        open_denoiser(tmp_path)


def test_weights_in_half_precision_are_opened_in_full(tmp_path: Path) -> None:
    write_own(tmp_path, network_for("residual", (3, 4, 4), 0, width=8, blocks=1).half())
    assert {w.dtype for w in open_denoiser(tmp_path).parameters()} == {torch.float32}
