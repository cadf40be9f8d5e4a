import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from recollect import InputError, audit, mask, open_model
from recollect.diffusion import bundled, open_denoiser, opening
from recollect.diffusion.library import diffusers
from recollect.diffusion.preconditioning import VariancePreserving
from recollect.methods import DDNM, KnownMask
from tests.diffusion.folders import unet, write_folder, write_index
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


class Trap:
    """Unpickled, it makes a folder: so would a hostile file run its code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def pickled(folder: Path, name: str, made: Path) -> Path:
    """Replace the weights of a network by a pickle."""
    weights = folder / "diffusion_pytorch_model.safetensors"
    torch.save({**load_file(weights), "trap": Trap(made)}, folder / name)
    weights.unlink()
    return folder


@pytest.mark.parametrize("name", ["diffusion_pytorch_model.bin", "diffusion_pytorch_model.pt", "model.ckpt"])
def test_weights_in_a_pickle_are_refused_with_how_to_convert_them(written: Path, tmp_path: Path, name: str) -> None:
    made = tmp_path / "code has run"
    sentence = rf"only a pickle \({name}\), which could run code: .* save_pretrained, which writes safetensors"
    plain = pickled(shutil.copytree(written, tmp_path / "plain"), name, made)
    pipeline = write_index(write_folder(tmp_path / "pipeline", diffusers().DDPMScheduler(1000)))
    write_folder(tmp_path / "pipeline" / "vae", diffusers().DDPMScheduler(1000))  # safetensors of another part
    pickled(pipeline / "unet", name, made)
    for folder in (plain, pipeline):
        for opens in (open_denoiser, open_model):
            with pytest.raises(InputError, match=sentence) as refused:
                opens(folder)
            assert "\n" not in str(refused.value)
    assert not made.exists()


def test_a_pickle_beside_safetensors_is_not_read(written: Path, tmp_path: Path) -> None:
    made, both = tmp_path / "code has run", shutil.copytree(written, tmp_path / "both")
    torch.save(Trap(made), both / "diffusion_pytorch_model.bin")
    assert open_denoiser(both).weights_hash == open_denoiser(written).weights_hash
    assert not made.exists()


def test_weights_in_parts_open_and_no_part_is_a_pickle(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, diffusers().DDPMScheduler(1000))
    whole = open_denoiser(folder).weights_hash
    (folder / "unet" / "diffusion_pytorch_model.safetensors").unlink()
    unet().save_pretrained(folder / "unet", max_shard_size="50KB")
    assert open_denoiser(folder).weights_hash == whole
    index = folder / "unet" / "diffusion_pytorch_model.safetensors.index.json"
    for other in ("weights.bin", "../weights.safetensors", 3):
        parts = json.loads(index.read_text())
        parts["weight_map"]["conv_in.bias"] = other
        index.write_text(json.dumps(parts))
        with pytest.raises(InputError, match="names other files than safetensors beside it"):
            open_denoiser(folder)


def test_weights_in_half_precision_are_taken_in_full(tmp_path: Path) -> None:
    """Under the usual name, or as the variant that repositories offer beside it."""
    half = unet().half()
    for folder, variant in ((tmp_path / "usual", None), (tmp_path / "variant", "fp16")):
        write_folder(folder, diffusers().DDPMScheduler(1000))
        (folder / "unet" / "diffusion_pytorch_model.safetensors").unlink()
        half.save_pretrained(folder / "unet", variant=variant)
        opened = open_denoiser(folder)
        assert {weights.dtype for weights in opened.parameters()} == {torch.float32}
        assert torch.equal(opened.network.conv_in.weight, half.conv_in.weight.float())


def pipeline(kind: str = "DDPMPipeline", **settings: Any) -> Any:
    schedule = diffusers().DDIMScheduler(1000, prediction_type="v_prediction")
    return getattr(diffusers(), kind)(unet(**settings), schedule)


def test_a_pipeline_opens_like_the_folder_it_writes_and_is_left_as_it_is(tmp_path: Path) -> None:
    given = pipeline()
    given.unet.train()
    given.save_pretrained(tmp_path)
    folder, live = open_denoiser(tmp_path), open_denoiser(given)
    assert (live.weights_hash, live.shape, live.name) == (folder.weights_hash, folder.shape, "DDPMPipeline")
    assert isinstance(open_model(given), type(live))
    assert given.unet.training
    assert all(weights.requires_grad for weights in given.unet.parameters())
    truth, x = mask("half", live.shape), pictures(2).pixels
    assert torch.equal(KnownMask()(live.at(0.2), x, truth).estimate, KnownMask()(folder.at(0.2), x, truth).estimate)
    assert open_model(pipeline(num_class_embeds=4), label=2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda given: given.unet.half(), r"in half precision: take them in full, with pipeline.unet.float\(\)"),
        (lambda given: given.register_modules(scheduler=diffusers().ScoreSdeVeScheduler()), "is a ScoreSdeVeScheduler"),
        (lambda given: given.register_modules(vae=diffusers().AutoencoderTiny()), "the latents of a AutoencoderTiny"),
        (lambda given: given.unet.register_to_config(sample_size=None), "does not say the size of its images"),
    ],
)
def test_pipelines_that_do_not_denoise_images_alone_are_refused(change: Any, words: str) -> None:
    given = pipeline()
    change(given)
    for opens in (open_denoiser, open_model):
        with pytest.raises(InputError, match=f"The DDPMPipeline cannot be used: .*{words}"):
            opens(given)
    with pytest.raises(InputError, match="is class-conditional: give a class with label"):
        open_model(pipeline(num_class_embeds=4))


class NetworkAlone(diffusers().DiffusionPipeline):  # type: ignore[misc]
    """A pipeline that has no noise schedule."""

    def __init__(self, unet: Any) -> None:
        super().__init__()
        self.register_modules(unet=unet)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: diffusers().DDPMPipeline(unet(), None), "it has no scheduler: a denoiser needs a UNet2DModel"),
        (lambda: NetworkAlone(unet()), "it has no scheduler"),
        (lambda: diffusers().DDPMPipeline(None, diffusers().DDIMScheduler()), "it is made of scheduler"),
        (lambda: diffusers().DDPMPipeline(None, None), "it has no unet"),
        (lambda: diffusers().DDPMPipeline(torch.nn.Linear(3, 3), diffusers().DDIMScheduler()), "network is a Linear"),
        (lambda: diffusers().DDPMPipeline(unet(), torch.nn.Linear(3, 3)), "its noise schedule is a Linear"),
    ],
)
def test_pipelines_that_lack_a_part_or_have_a_foreign_one_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"The (DDPMPipeline|NetworkAlone) cannot be used: .*{words}"):
        open_denoiser(make())


def test_a_network_alone_lacks_its_noise_schedule() -> None:
    """Called as an autoencoder it would only say that it misses an argument."""
    train, unseen = pictures(4), pictures(3, seed=1)
    for use in (open_denoiser, open_model, lambda given: audit(given, train=train, control=unseen)):
        with pytest.raises(InputError, match=r"A UNet2DModel alone lacks its noise schedule: .*DDPMPipeline\(unet"):
            use(unet())


def test_what_is_not_there_is_told(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"There is no folder .*nowhere with a model in it"):
        open_denoiser(tmp_path / "nowhere")
    with pytest.raises(InputError, match="There is no folder my-prior with"):
        open_denoiser("my-prior")
    with pytest.raises(InputError, match="a hub name or a pipeline of diffusers, not from a NoneType"):
        open_denoiser(None)
    with pytest.raises(InputError, match=r"There is no file .*config.json"):
        open_denoiser(tmp_path)
    copied = shutil.copytree(written, tmp_path / "copy")
    (copied / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no weights as safetensors, and pickles .* are not opened: if you"):
        open_denoiser(copied)
    (copied / "scheduler_config.json").unlink()
    for opens in (open_denoiser, open_model):
        with pytest.raises(InputError, match="it has no noise schedule: save its scheduler into the same folder"):
            opens(copied)
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
    with pytest.raises(
        InputError,
        match="its noise schedule is a ScoreSdeVeScheduler, whose noise levels are not known here; known are DDPM",
    ):
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
