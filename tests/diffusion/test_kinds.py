"""Models that open but are no denoisers of images are refused in one sentence."""

import json
import math
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from recollect import InputError
from recollect.diffusion import open_denoiser
from recollect.diffusion.kinds import VARIANCE_PRESERVING
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
        (
            SCHEDULE,
            {"_class_name": "ScoreSdeVeScheduler"},
            "is a ScoreSdeVeScheduler, whose noise levels are not known here; known are DDPM",
        ),
        (SCHEDULE, {"_class_name": "FlowMatchEulerDiscreteScheduler", "invert_sigmas": True}, "invert_sigmas"),
        (SCHEDULE, {"_class_name": "EDMEulerScheduler", "prediction_type": "sample"}, "it predicts 'sample'"),
        (SCHEDULE, {"prediction_type": "flow"}, "predicts 'flow'; known are epsilon, v_prediction, sample"),
        (SCHEDULE, {"beta_schedule": "unheard of"}, "its noise schedule cannot be read"),
        (
            SCHEDULE,
            {"_class_name": "EDMEulerScheduler", "sigma_max": math.inf},
            r"sigma_max = inf, which is no number from 1e-09 to 1e\+09",
        ),
        (SCHEDULE, {"_class_name": "EDMEulerScheduler", "prediction_type": ["epsilon"]}, r"it predicts \['epsilon'\]"),
        (SCHEDULE, {"_class_name": "EDMEulerScheduler", "sigma_min": 80}, r"\(sigma_min\), 80, is not below .*, 80"),
        (
            SCHEDULE,
            {
                "_class_name": "EulerDiscreteScheduler",
                "timestep_type": "continuous",
                "prediction_type": "v_prediction",
                "sigma_min": 9,
                "sigma_max": 1,
            },
            r"\(sigma_min\), 9, is not below its highest \(sigma_max\), 1",
        ),
        (SCHEDULE, {"use_flow_sigmas": True}, r"those of a flow \(use_flow_sigmas\), but it predicts 'epsilon'"),
        (SCHEDULE, {"prediction_type": "flow_prediction"}, "predicts 'flow_prediction'; known are epsilon"),
    ],
)
def test_other_kinds_are_refused(tmp_path: Path, file: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_denoiser(changed(tmp_path, file, **settings))


@pytest.mark.parametrize("value", [None, "x", [1000], 0, -1, 1.5])
@pytest.mark.parametrize("kind", ["FlowMatchEulerDiscreteScheduler", "DDPMScheduler"])
def test_time_steps_that_are_no_number_of_steps_are_refused(tmp_path: Path, kind: str, value: Any) -> None:
    folder = changed(tmp_path, SCHEDULE, _class_name=kind, num_train_timesteps=value)
    with pytest.raises(InputError, match=r"noise schedule has num_train_timesteps = .*, which is no whole number of 1"):
        open_denoiser(folder)


def test_a_flow_whose_time_runs_from_0_to_1_opens(tmp_path: Path) -> None:
    folder = changed(tmp_path, SCHEDULE, _class_name="FlowMatchEulerDiscreteScheduler", num_train_timesteps=1)
    assert open_denoiser(folder).preconditioning.at(1.0).time == 0.5


@pytest.mark.parametrize("label", [None, 0, 1])
@pytest.mark.parametrize("value", ["x", [3], {}, -3, 0, True])
def test_classes_that_are_no_number_of_classes_are_refused(tmp_path: Path, value: Any, label: int | None) -> None:
    folder = changed(tmp_path, NETWORK, num_class_embeds=value)
    with pytest.raises(InputError, match=r"its network has num_class_embeds = .*, which is no whole number of 1"):
        open_denoiser(folder, label=label)


@pytest.mark.parametrize(
    "scheduler",
    [
        diffusers.EDMEulerScheduler(),
        diffusers.FlowMatchEulerDiscreteScheduler(1000),
        diffusers.EulerDiscreteScheduler(timestep_type="continuous", prediction_type="v_prediction"),
    ],
    ids=lambda scheduler: type(scheduler).__name__,
)
def test_a_network_that_learned_whole_steps_is_not_told_the_noise_level_itself(tmp_path: Path, scheduler: Any) -> None:
    network = unet(time_embedding_type="learned", num_train_timesteps=1000)
    with pytest.raises(InputError, match="learned whole time steps"):
        open_denoiser(write_folder(tmp_path, scheduler, network))


@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")  # of diffusers
def test_settings_of_the_sampler_do_not_change_the_noise_schedule(tmp_path: Path) -> None:
    """They say at which levels a sampler calls the network, and which of two ends it takes."""
    sampling: dict[str, Any] = {"timestep_spacing": "trailing", "steps_offset": 1, "use_karras_sigmas": True}
    levels = open_denoiser(write_folder(tmp_path / "plain", diffusers.DDPMScheduler(1000))).sigmas
    for kind in VARIANCE_PRESERVING:
        betas = {"beta_start": 0.0001, "beta_end": 0.02}  # the defaults of most
        known = signature(getattr(diffusers, kind)).parameters
        own = {name: value for name, value in sampling.items() if name in known}
        scheduler = getattr(diffusers, kind)(1000, **betas, **own)
        assert open_denoiser(write_folder(tmp_path / kind, scheduler)).sigmas == pytest.approx(levels)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of diffusers
def test_settings_that_a_file_leaves_out_are_the_defaults_of_its_class(tmp_path: Path) -> None:
    """Heun's scheduler has other betas than the rest."""
    scheduler = diffusers.HeunDiscreteScheduler(1000)
    folder = write_folder(tmp_path, scheduler)
    (folder / SCHEDULE).write_text(json.dumps({"_class_name": "HeunDiscreteScheduler"}))
    expected = float(((1 - scheduler.alphas_cumprod[-1]) / scheduler.alphas_cumprod[-1]).sqrt())
    assert open_denoiser(folder).preconditioning.highest == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler"])
def test_a_schedule_that_ends_in_noise_alone_is_read(tmp_path: Path, kind: str) -> None:
    scheduler = getattr(diffusers, kind)(1000, rescale_betas_zero_snr=True, prediction_type="v_prediction")
    assert len(open_denoiser(write_folder(tmp_path, scheduler)).sigmas) == 999


def test_a_class_that_the_network_does_not_know_is_refused(tmp_path: Path) -> None:
    plain = write_folder(tmp_path / "plain", diffusers.DDPMScheduler(1000))
    with pytest.raises(InputError, match="knows no classes: leave label=2 out"):
        open_denoiser(plain, label=2)
    classes = write_folder(tmp_path / "classes", diffusers.DDPMScheduler(1000), unet(num_class_embeds=4))
    with pytest.raises(InputError, match="label is a class from 0 to 3, got 4"):
        open_denoiser(classes, label=4)
    with pytest.raises(InputError, match="label is the number of a class"):
        open_denoiser(classes, label="cat")  # type: ignore[arg-type]


def test_pipelines_of_text_are_refused_before_their_weights_are_read(tmp_path: Path) -> None:
    text = write_index(tmp_path / "text", text_encoder=["transformers", "CLIPTextModel"], vae=["diffusers", "x"])
    with pytest.raises(InputError, match="makes images from text, and no prompt belongs to a damaged image"):
        open_denoiser(text)


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
    (folder / "model_index.json").unlink()
    (folder / "unet").rename(folder / "transformer")
    with pytest.raises(InputError, match="cannot be used: it holds no UNet2DModel"):
        open_denoiser(folder)
    (folder / "transformer").rename(folder / "unet")
    own_loop = write_index(folder, _class_name=["pipeline", "MyPipeline"])  # custom_pipeline: how samples are drawn
    (own_loop / "pipeline.py").write_text("raise SystemExit('this code has run')")
    assert open_denoiser(own_loop).shape == (3, 8, 8)


@pytest.mark.parametrize("file", [NETWORK, SCHEDULE, "model_index.json"])
def test_settings_that_are_no_settings_are_refused(tmp_path: Path, file: str) -> None:
    folder = write_index(write_folder(tmp_path, diffusers.DDPMScheduler(1000)))
    (folder / file).write_text("[1, 2]")
    with pytest.raises(InputError, match="does not describe a model"):
        open_denoiser(folder)
