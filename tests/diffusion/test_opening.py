import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from recollect import InputError, mask
from recollect.diffusion import bundled, open_denoiser, opening
from recollect.diffusion.preconditioning import VariancePreserving
from recollect.methods import DDNM
from tests.diffusion.making import pictures


def test_a_model_in_diffusers_layout_opens_and_restores(written: Path) -> None:
    prior = open_denoiser(written)
    assert (prior.shape, len(prior.alphas_cumprod)) == ((3, 8, 8), 1000)
    assert isinstance(prior.preconditioning, VariancePreserving)
    assert prior.preconditioning.prediction == "v_prediction"
    assert not any(p.requires_grad for p in prior.parameters())
    assert not prior.training
    assert prior.card is not None
    assert prior.card.overlap(pictures()).exact == 12
    truth, x = mask("half", prior.shape), pictures(2).pixels
    found = DDNM(prior, steps=5)(torch.sigmoid, truth.apply(x), truth)
    assert torch.equal(found.estimate[:, :, :4], x[:, :, :4])
    assert bool(torch.isfinite(found.estimate).all())


def test_parts_may_lie_in_folders_of_their_own(written: Path, tmp_path: Path) -> None:
    for part, names in {"unet": ["config.json", "*.safetensors"], "scheduler": ["scheduler_config.json"]}.items():
        (tmp_path / part).mkdir()
        for file in [f for name in names for f in written.glob(name)]:
            shutil.copy(file, tmp_path / part)
    prior = open_denoiser(str(tmp_path))
    assert prior.card is None
    assert prior.weights_hash == open_denoiser(written).weights_hash


def test_weights_may_lie_in_a_bin_file_beside_other_parts_in_safetensors(
    written: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for part in ("unet", "scheduler", "vae"):
        (tmp_path / part).mkdir()
    shutil.copy(written / "config.json", tmp_path / "unet")
    shutil.copy(written / "scheduler_config.json", tmp_path / "scheduler")
    weights = written / "diffusion_pytorch_model.safetensors"
    shutil.copy(weights, tmp_path / "vae")
    torch.save(load_file(weights), tmp_path / "unet" / "diffusion_pytorch_model.bin")
    assert open_denoiser(tmp_path).weights_hash == open_denoiser(written).weights_hash
    assert "unsafe serialization" not in caplog.text + capfd.readouterr().err


def test_what_is_not_there_is_told(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"There is no folder .*nowhere with a model in it"):
        open_denoiser(tmp_path / "nowhere")
    with pytest.raises(InputError, match="There is no folder my-prior with"):
        open_denoiser("my-prior")
    with pytest.raises(InputError, match="from a folder or a hub name, not from a NoneType"):
        open_denoiser(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"There is no file .*config.json"):
        open_denoiser(tmp_path)
    copied = shutil.copytree(written, tmp_path / "copy")
    (copied / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"The network of the diffusion model in .* cannot be opened"):
        open_denoiser(copied)
    monkeypatch.setattr(opening, "BUNDLED", tmp_path / "gone")
    with pytest.raises(InputError, match="missing from this installation"):
        bundled()


def changed(written: Path, folder: Path, name: str, **facts: object) -> Path:
    copied = shutil.copytree(written, folder)
    config = json.loads((copied / name).read_text())
    (copied / name).write_text(json.dumps(config | facts))
    return copied


def test_what_opens_but_would_restore_nonsense_is_refused(written: Path, tmp_path: Path) -> None:
    other = changed(written, tmp_path / "schedule", "scheduler_config.json", _class_name="ScoreSdeVeScheduler")
    with pytest.raises(InputError, match="its noise schedule is a ScoreSdeVeScheduler, which has no alphas_cumprod"):
        open_denoiser(other)
    other = changed(written, tmp_path / "network", "config.json", _class_name="UNet2DConditionModel")
    with pytest.raises(InputError, match="its network is a UNet2DConditionModel"):
        open_denoiser(other)
    weights = safetensors.torch.load_file(written / "diffusion_pytorch_model.safetensors")
    few = shutil.copytree(written, tmp_path / "few") / "diffusion_pytorch_model.safetensors"
    safetensors.torch.save_file({k: v for k, v in weights.items() if "conv_in" not in k}, few)
    with pytest.raises(InputError, match=r"weights are missing \(conv_in.bias, conv_in.weight\)"):
        open_denoiser(few.parent)
    safetensors.torch.save_file({k: v * torch.nan for k, v in weights.items()}, few)
    with pytest.raises(InputError, match="some of its weights are not finite"):
        open_denoiser(few.parent)


def test_a_name_without_a_network_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="no model of that name could be fetched from the Hugging Face hub"):
        open_denoiser("somebody/no-such-prior")
