"""Models that open but are no denoisers of images are refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from recollect import InputError
from recollect.diffusion import open_denoiser
from recollect.diffusion.library import diffusers as library
from tests.diffusion.folders import unet, write_folder, write_index

diffusers = library()


def changed(folder: Path, file: str, **settings: Any) -> Path:
    """A model of which one file says something else."""
    write_folder(folder, diffusers.DDPMScheduler(1000))
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


NETWORK, SCHEDULE = "unet/config.json", "scheduler/scheduler_config.json"


@pytest.mark.parametrize(
    ("file", "settings", "words"),
    [
        (NETWORK, {"_class_name": "UNet2DConditionModel"}, "is a UNet2DConditionModel, which needs a prompt"),
        (NETWORK, {"_class_name": "VQModel"}, "is a VQModel, not a UNet2DModel"),
        (NETWORK, {"time_embedding_type": "fourier"}, "random Fourier features"),
        (NETWORK, {"num_class_embeds": 10}, r"is class-conditional: give a class with label \(--label\), 0 to 9"),
        (NETWORK, {"class_embed_type": "timestep"}, "is class-conditional"),
        (NETWORK, {"class_embed_type": "identity"}, "conditioned on a vector"),
        (NETWORK, {"sample_size": None}, "does not say the size of its images"),
        (NETWORK, {"sample_size": "large"}, "the size of its images is no size"),
        (NETWORK, {"out_channels": 6}, "takes 3 channels and returns 6"),
        (SCHEDULE, {"_class_name": "ScoreSdeVeScheduler"}, "is a ScoreSdeVeScheduler, which has no alphas_cumprod"),
        (SCHEDULE, {"_class_name": "FlowMatchEulerDiscreteScheduler", "invert_sigmas": True}, "invert_sigmas"),
        (SCHEDULE, {"_class_name": "EDMEulerScheduler", "prediction_type": "sample"}, "it predicts 'sample'"),
        (SCHEDULE, {"prediction_type": "flow"}, "predicts 'flow'; known are epsilon, v_prediction, sample"),
        (SCHEDULE, {"beta_schedule": "unheard of"}, "its noise schedule cannot be read"),
    ],
)
def test_other_kinds_are_refused(tmp_path: Path, file: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_denoiser(changed(tmp_path, file, **settings))


def test_a_class_that_the_network_does_not_know_is_refused(tmp_path: Path) -> None:
    plain = write_folder(tmp_path / "plain", diffusers.DDPMScheduler(1000))
    with pytest.raises(InputError, match="knows no classes: leave label=2 out"):
        open_denoiser(plain, label=2)
    classes = write_folder(tmp_path / "classes", diffusers.DDPMScheduler(1000), unet(num_class_embeds=4))
    with pytest.raises(InputError, match="label is a class from 0 to 3, got 4"):
        open_denoiser(classes, label=4)
    with pytest.raises(InputError, match="label is the number of a class"):
        open_denoiser(classes, label="cat")  # type: ignore[arg-type]


def test_pipelines_of_text_and_latents_are_refused_before_their_weights_are_read(tmp_path: Path) -> None:
    text = write_index(tmp_path / "text", text_encoder=["transformers", "CLIPTextModel"], vae=["diffusers", "x"])
    with pytest.raises(InputError, match="makes images from text, and no prompt belongs to a damaged image"):
        open_denoiser(text)
    latent = write_index(tmp_path / "latent", vae=["diffusers", "AutoencoderKL"], scheduler=["diffusers", "DDIM"])
    with pytest.raises(InputError, match="denoises the latents of an autoencoder, and an erased pixel changes many"):
        open_denoiser(latent)


def test_a_pipeline_of_images_opens_and_runs_no_code_of_its_folder(tmp_path: Path) -> None:
    folder = write_index(write_folder(tmp_path, diffusers.DDPMScheduler(1000)), vae=[None, None])
    (folder / "pipeline.py").write_text("raise SystemExit('this code has run')")
    (folder / "unet" / "diffusion_pytorch_model.py").write_text("raise SystemExit('this code has run')")
    assert open_denoiser(folder).shape == (3, 8, 8)


def test_parts_whose_code_is_in_the_folder_or_on_the_hub_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, diffusers.DDPMScheduler(1000))
    for part, sentence in (
        ({"unet": ["my_network", "MyUNet"]}, r"its unet is code of its own \(my_network.MyUNet\), and no code"),
        ({"scheduler": ["my_schedule", "Mine"]}, r"its scheduler is code of its own \(my_schedule.Mine\)"),
        ({"unet": [None, None], "transformer": ["diffusers", "DiTTransformer2DModel"]}, "it is made of transformer"),
    ):
        with pytest.raises(InputError, match=sentence):
            open_denoiser(write_index(folder, **part))
    own_loop = write_index(folder, _class_name=["pipeline", "MyPipeline"])  # custom_pipeline: how samples are drawn
    (own_loop / "pipeline.py").write_text("raise SystemExit('this code has run')")
    assert open_denoiser(own_loop).shape == (3, 8, 8)


@pytest.mark.parametrize("file", [NETWORK, SCHEDULE, "model_index.json"])
def test_settings_that_are_no_settings_are_refused(tmp_path: Path, file: str) -> None:
    folder = write_index(write_folder(tmp_path, diffusers.DDPMScheduler(1000)))
    (folder / file).write_text("[1, 2]")
    with pytest.raises(InputError, match="does not describe a model"):
        open_denoiser(folder)
