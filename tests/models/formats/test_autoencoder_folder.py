import json
from pathlib import Path
from typing import Any

import pytest
import torch

from recollect import InputError, Iterate
from recollect.auditing import audit
from recollect.models import Adapted, PortableModel, open_model, probe_model, source_hash
from tests.models.making import images

diffusers = pytest.importorskip("diffusers", reason="needs diffusers: pip install 'recollect[diffusion]'")

ROUNDING = 1e-5  # of float32 through some twenty layers
X = images(3, (3, 16, 16))
ONE = {"layers_per_block": 1, "norm_num_groups": 4}
SETTINGS: dict[str, dict[str, Any]] = {
    "AutoencoderKL": {"block_out_channels": (8,), "latent_channels": 4, **ONE},
    "VQModel": {"block_out_channels": (8,), "num_vq_embeddings": 16, **ONE},
    "AutoencoderTiny": {
        "encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8), "num_encoder_blocks": (1, 1),
        "num_decoder_blocks": (1, 1),
    },
    "AsymmetricAutoencoderKL": {
        "down_block_out_channels": (8,), "layers_per_down_block": 1, "up_block_out_channels": (8,),
        "layers_per_up_block": 1, "norm_num_groups": 4,
    },
}  # fmt: skip


def saved(kind: str, folder: Path) -> Any:
    torch.manual_seed(0)
    network = getattr(diffusers, kind)(**SETTINGS[kind]).eval()
    network.save_pretrained(folder)
    return network


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_folder_opens_as_an_autoencoder_of_images(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = saved(kind, tmp_path)
    caplog.clear()
    opened = open_model(str(tmp_path))
    assert not caplog.messages  # diffusers warns of settings that it wrote itself
    assert isinstance(opened, Adapted)
    assert opened.how.into.words == "input_range='-1,1' (--input-range -1,1)"
    assert probe_model(opened, X).deterministic
    with torch.no_grad():
        values = 2 * X - 1
        expected = network.decode(network.encode(values).latents) if kind == "AutoencoderTiny" else network(values)
        assert torch.allclose(opened(X), expected.sample / 2 + 0.5, atol=ROUNDING)
    assert opened.inner.__name__ == kind


def test_a_range_that_is_stated_holds(tmp_path: Path) -> None:
    network = saved("AutoencoderKL", tmp_path)
    with torch.no_grad():
        assert torch.allclose(open_model(tmp_path, input_range="0,1")(X), network(X).sample, atol=ROUNDING)


def test_it_is_audited_and_travels(tmp_path: Path) -> None:
    saved("AutoencoderKL", folder := tmp_path / "vae")
    found = audit(str(folder), train=X, masks="half", methods=[Iterate(limit=2)]).facts["model"]
    assert (found["name"], found["format"]["kind"]) == ("AutoencoderKL", "autoencoder-folder")
    before, opened = source_hash(str(folder)), open_model(folder)
    sent = PortableModel.of(str(folder), {"device": "cpu"})
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    assert source_hash(str(folder)) != before
    for file in folder.iterdir():
        file.unlink()
    with torch.no_grad():
        assert torch.equal(sent.opened(X), opened(X))


def test_a_variant_in_half_precision_is_taken_in_full(tmp_path: Path) -> None:
    network = saved("AutoencoderKL", tmp_path).half()
    next(tmp_path.glob("*.safetensors")).unlink()
    network.save_pretrained(tmp_path, variant="fp16")
    with torch.no_grad():
        assert torch.allclose(open_model(tmp_path)(X), network.float()(2 * X - 1).sample / 2 + 0.5, atol=1e-6)


def changed(folder: Path, **settings: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return folder


def test_what_does_not_open_is_said(tmp_path: Path) -> None:
    saved("AutoencoderKL", tmp_path)
    for settings, message in (
        ({"_class_name": "AutoencoderOobleck"}, "holds an AutoencoderOobleck; autoencoders of diffusers that open are"),
        ({"block_out_channels": [100_000]}, "far more weights than its files hold"),
        ({"block_out_channels": [8, 8]}, "cannot be opened|weights are missing"),
        ({"act_fn": "nothing"}, "cannot be opened"),
    ):
        kept = (tmp_path / "config.json").read_text()
        with pytest.raises(InputError, match=message):
            open_model(changed(tmp_path, **settings))
        (tmp_path / "config.json").write_text(kept)
    weights = next(tmp_path.glob("*.safetensors"))
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(
        InputError, match=r"only a pickle \(diffusion_pytorch_model.bin\), which could run code: if you"
    ):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        open_model(tmp_path)


def test_weights_in_parts_are_opened_without_a_bar(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    saved("AutoencoderKL", tmp_path / "whole").save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    capfd.readouterr()
    assert torch.equal(open_model(tmp_path / "parts")(X), open_model(tmp_path / "whole")(X))
    assert capfd.readouterr() == ("", "")
    assert diffusers.utils.logging.is_progress_bar_enabled()
