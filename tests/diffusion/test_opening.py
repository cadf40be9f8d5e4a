import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from recollect import InputError, mask
from recollect.diffusion import bundled, open_prior, opening
from recollect.methods import DDNM
from tests.diffusion.making import pictures


def test_a_trained_prior_opens_and_restores(trained: Path) -> None:
    prior = open_prior(trained)
    assert (prior.shape, prior.prediction, len(prior.alphas_cumprod)) == ((3, 8, 8), "v_prediction", 1000)
    assert not any(p.requires_grad for p in prior.parameters())
    assert not prior.training
    assert prior.card is not None
    assert prior.card.overlap(pictures()).exact == 12
    truth, x = mask("half", prior.shape), pictures(2).pixels
    found = DDNM(prior, steps=5)(torch.sigmoid, truth.apply(x), truth)
    assert torch.equal(found.estimate[:, :, :4], x[:, :, :4])
    assert bool(torch.isfinite(found.estimate).all())


def test_parts_may_lie_in_folders_of_their_own(trained: Path, tmp_path: Path) -> None:
    for part, names in {"unet": ["config.json", "*.safetensors"], "scheduler": ["scheduler_config.json"]}.items():
        (tmp_path / part).mkdir()
        for file in [f for name in names for f in trained.glob(name)]:
            shutil.copy(file, tmp_path / part)
    prior = open_prior(str(tmp_path))
    assert prior.card is None
    assert prior.weights_hash == open_prior(trained).weights_hash


def test_weights_may_lie_in_a_bin_file_beside_other_parts_in_safetensors(
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for part in ("unet", "scheduler", "vae"):
        (tmp_path / part).mkdir()
    shutil.copy(trained / "config.json", tmp_path / "unet")
    shutil.copy(trained / "scheduler_config.json", tmp_path / "scheduler")
    weights = trained / "diffusion_pytorch_model.safetensors"
    shutil.copy(weights, tmp_path / "vae")
    torch.save(load_file(weights), tmp_path / "unet" / "diffusion_pytorch_model.bin")
    assert open_prior(tmp_path).weights_hash == open_prior(trained).weights_hash
    assert "unsafe serialization" not in caplog.text + capfd.readouterr().err


def test_what_is_not_there_is_told(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"There is no folder .*nowhere with a diffusion prior in it"):
        open_prior(tmp_path / "nowhere")
    with pytest.raises(InputError, match="There is no folder my-prior with"):
        open_prior("my-prior")
    with pytest.raises(InputError, match="from a folder or a hub name, not from a NoneType"):
        open_prior(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"The unet of the diffusion prior in .* cannot be opened: .*config.json"):
        open_prior(tmp_path)
    copied = shutil.copytree(trained, tmp_path / "copy")
    (copied / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"The unet of the diffusion prior in .* cannot be opened"):
        open_prior(copied)
    monkeypatch.setattr(opening, "BUNDLED", tmp_path / "gone")
    with pytest.raises(InputError, match="missing from this installation"):
        bundled()


def changed(trained: Path, folder: Path, name: str, **facts: object) -> Path:
    copied = shutil.copytree(trained, folder)
    config = json.loads((copied / name).read_text())
    (copied / name).write_text(json.dumps(config | facts))
    return copied


def test_what_opens_but_would_restore_nonsense_is_refused(trained: Path, tmp_path: Path) -> None:
    other = changed(trained, tmp_path / "schedule", "scheduler_config.json", _class_name="ScoreSdeVeScheduler")
    with pytest.raises(InputError, match="its schedule is of the kind ScoreSdeVeScheduler, known are DDPMScheduler"):
        open_prior(other)
    other = changed(trained, tmp_path / "network", "config.json", _class_name="UNet2DConditionModel")
    with pytest.raises(InputError, match="its network is a UNet2DConditionModel"):
        open_prior(other)
    weights = safetensors.torch.load_file(trained / "diffusion_pytorch_model.safetensors")
    few = shutil.copytree(trained, tmp_path / "few") / "diffusion_pytorch_model.safetensors"
    safetensors.torch.save_file({k: v for k, v in weights.items() if "conv_in" not in k}, few)
    with pytest.raises(InputError, match=r"weights are missing \(conv_in.bias, conv_in.weight\)"):
        open_prior(few.parent)
    safetensors.torch.save_file({k: v * torch.nan for k, v in weights.items()}, few)
    with pytest.raises(InputError, match="some of its weights are not finite"):
        open_prior(few.parent)


def test_a_name_without_a_network_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="no prior of that name could be fetched from the Hugging Face hub"):
        open_prior("somebody/no-such-prior")


def test_without_diffusers_one_sentence_says_how_to_get_it(trained: Path) -> None:
    code = f"""
        import sys

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "diffusers":
                    raise ModuleNotFoundError("No module named 'diffusers'", name="diffusers")

        sys.meta_path.insert(0, Refuse())
        from recollect import InputError
        from recollect.diffusion import open_prior
        try:
            open_prior({str(trained)!r})
        except InputError as error:
            print(error)
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = "A diffusion prior needs diffusers, and diffusers is not installed: pip install 'recollect[diffusion]'."
    assert done.stdout.strip() == expected, done.stderr
