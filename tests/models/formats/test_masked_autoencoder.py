import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import InputError, Iterate
from recollect.auditing import audit
from recollect.models import Adapted, PortableModel, open_model, probe_model, source_hash
from tests.auditing.making import images
from tests.models.making import images as pixels

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'recollect[transformers]'")

X = pixels(3, (3, 16, 16))
PART = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
SMALL = PART | {f"decoder_{name}": value for name, value in PART.items()}


def network(**more: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.ViTMAEConfig(**SMALL | {"image_size": 16, "patch_size": 4} | more)
    made = transformers.ViTMAEForPreTraining(config).eval()
    torch.nn.init.normal_(made.decoder.decoder_pos_embed)  # so that positions differ
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    network().save_pretrained(tmp_path)
    return tmp_path


def changed(folder: Path, **settings: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return folder


def patches(values: Tensor) -> Tensor:
    return values.unfold(2, 4, 4).unfold(3, 4, 4).transpose(1, 3).flatten(3).flatten(1, 2)


def test_a_folder_opens_and_is_audited_as_an_autoencoder(folder: Path) -> None:
    opened = open_model(folder)
    assert probe_model(opened, X).deterministic
    train, control = images(3, 1, size=16), images(3, 2, size=16)
    found = audit(str(folder), train=train, control=control, masks="half", methods=[Iterate(limit=2)])
    assert found.facts["model"]["name"] == "ViTMAEForPreTraining"
    assert found.facts["model"]["format"]["kind"] == "masked-autoencoder"
    form = next(check for check in found.checks if check.name == "form")
    assert "in 4 passes that each hide 12 of 16 patches" in form.sentence
    assert found.facts["model"]["audited_as"] == form.sentence
    assert source_hash(str(folder)) is not None
    sent = PortableModel.of(str(folder), {"device": "cpu"})
    for file in folder.iterdir():
        file.unlink()
    with torch.no_grad():
        assert torch.equal(sent.opened(X), opened(X))


@torch.no_grad()
def test_each_patch_is_the_mean_of_the_predictions_that_do_not_see_it(folder: Path) -> None:
    opened: Any = open_model(folder)
    plain = network()
    ranks, hidden = opened.ranks, opened.hidden
    assert ranks.shape == (4, 16)  # three quarters are hidden, so four passes show each patch once
    predictions = torch.stack([plain(X, noise=row.expand(3, -1)).logits for row in ranks])
    expected = (predictions * hidden[:, None, :, None]).sum(0) / 3
    assert torch.allclose(opened(X), plain.unpatchify(expected), atol=1e-6)


@torch.no_grad()
def test_no_patch_is_computed_from_itself(folder: Path) -> None:
    opened, other = open_model(folder), X.clone()
    other[:, :, 4:8, 8:12] = 0.0
    difference = (patches(opened(X)) - patches(opened(other))).abs().amax((0, 2)).view(4, 4)
    assert float(difference[1, 2]) == 0
    assert int((difference > 0).sum()) == 12  # of 16: three are always shown together with it


def test_the_normalization_that_the_folder_states_is_used(folder: Path) -> None:
    processor = {"do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    opened = open_model(folder)
    assert isinstance(opened, Adapted)
    assert opened.how.into.words.startswith("mean='0.5,0.4,0.3'")
    stated = open_model(folder, input_range="0,1")
    assert isinstance(stated, Adapted)
    assert stated.how.into.words.startswith("input_range='0,1'")
    (folder / "preprocessor_config.json").write_text(json.dumps(processor | {"do_normalize": False}))
    assert not isinstance(open_model(folder), Adapted)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architectures": ["ViTModel"]}, "holds a ViTModel of transformers; of these ViTMAEForPreTraining opens"),
        ({"norm_pix_loss": True}, "predicts normalized patches"),
        ({"mask_ratio": 0.0}, "hides 0% of 16 patches: nothing is left to predict"),
        ({"mask_ratio": 0.99}, "hides 99% of 16 patches"),
        ({"image_size": [16, 8]}, "other than square images"),
        ({"hidden_size": "many"}, "settings in .* are wrong"),
        ({"hidden_size": 10**6}, "far more weights than its files hold"),
        ({"num_hidden_layers": 2}, r"weights are missing"),
    ],
)
def test_what_does_not_open_is_said(folder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_model(changed(folder, **settings))


def test_settings_that_name_code_are_not_passed_on(folder: Path) -> None:
    named = {"auto_map": {"AutoModel": "evil--code.Model"}, "_attn_implementation": "evil/kernels"}
    opened: Any = open_model(changed(folder, **named, quantization_config={"quant_method": "evil"}))
    assert opened.network.config._attn_implementation == "sdpa"
    with torch.no_grad():
        assert torch.allclose(opened(X), open_model(changed(folder, auto_map=None))(X))


def test_a_damaged_file_is_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match=rf"The masked autoencoder in {re.escape(str(folder))} cannot be opened"):
        open_model(folder)
    broken = network()
    torch.nn.init.constant_(broken.decoder.decoder_pred.bias, math.nan)
    broken.save_pretrained(folder)
    with pytest.raises(InputError, match="some of its weights are not finite"):
        open_model(folder)
