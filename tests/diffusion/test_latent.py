"""A latent model is held against a model of pixels: with an exact linear autoencoder both are one."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recollect import Blind, Images, InputError, audit, mask, open_model
from recollect.diffusion import Denoiser, open_denoiser, sample
from recollect.diffusion.latent import LatentDenoiser
from recollect.diffusion.library import diffusers as library
from recollect.diffusion.membership import denoising_loss, secmi
from recollect.methods import DDNM
from recollect.scoring import mse
from tests.diffusion.folders import unet, write_folder, write_index
from tests.diffusion.making import memory_of, pictures, posterior_mean

diffusers = library()
VALUES = 48  # of a tile of 3x4x4


class TileCodec(nn.Module):
    """A linear autoencoder of tiles: it keeps so many of their 48 values, in a rotated basis."""

    def __init__(self, kept: int = VALUES, factor: float = 1.0, shift: float = 0.0) -> None:
        super().__init__()
        rotated = torch.linalg.qr(torch.randn(VALUES, VALUES, generator=torch.Generator().manual_seed(0)))[0]
        self.basis = nn.Parameter(rotated[:kept], requires_grad=False)
        self.config = {"scaling_factor": factor, "shift_factor": shift, "block_out_channels": (1, 1, 1)}

    def encode(self, x: Tensor) -> Any:
        side = x.shape[-1] // 4
        tiles = functional.unfold(x, 4, stride=4).transpose(1, 2) @ self.basis.T
        return SimpleNamespace(latents=tiles.transpose(1, 2).unflatten(2, (side, side)))

    def decode(self, z: Tensor) -> Any:
        tiles = (z.flatten(2).transpose(1, 2) @ self.basis).transpose(1, 2)
        return SimpleNamespace(sample=functional.fold(tiles, 4 * z.shape[-1], 4, stride=4))


def latent_memory_of(images: Images, codec: TileCodec) -> LatentDenoiser:
    """The exact denoiser of the latents of these images."""
    side = images.image_shape[1] // 4
    latents = (codec.encode(2 * images.pixels - 1).latents - codec.config["shift_factor"]) * codec.config[
        "scaling_factor"
    ]
    own = Denoiser.of(posterior_mean(latents), (len(codec.basis), side, side), "latent memory")
    return LatentDenoiser(own, codec)


def test_with_a_rotation_as_autoencoder_it_is_the_denoiser_of_pixels() -> None:
    images, unseen = pictures(6), pictures(4, seed=1)
    latent, pixel = latent_memory_of(images, TileCodec()), memory_of(images)
    assert (latent.shape, latent.space) == ((3, 8, 8), (VALUES, 2, 2))
    for sigma in (0.1, 0.8):
        assert torch.allclose(latent(unseen.pixels, sigma), pixel(unseen.pixels, sigma), atol=1e-5)
    assert torch.allclose(secmi(latent, unseen, 0.1), secmi(pixel, unseen, 0.1), rtol=1e-3)
    losses = [denoising_loss(one, unseen, 0.4, draws=200) for one in (latent, pixel)]
    assert torch.allclose(losses[0], losses[1], rtol=0.1)  # other draws of the same noise
    truth = mask("block", images.shape, count=6)
    y = truth.apply(images.pixels)
    found = [Blind(0.5, limit=2)(one.at(0.4), y).estimate for one in (latent, pixel)]
    assert torch.allclose(found[0], found[1], atol=1e-4)


def test_latents_are_shifted_and_scaled_as_the_autoencoder_says() -> None:
    images = pictures(6)
    plain, scaled = (latent_memory_of(images, TileCodec(VALUES, *own)) for own in ((1.0, 0.0), (0.5, 0.2)))
    assert torch.allclose(scaled.decode(scaled.encode(images.pixels)), images.pixels, atol=1e-5)
    assert torch.allclose(scaled(images.pixels, 0.2), plain(images.pixels, 0.4), atol=1e-5)
    assert scaled.hash != plain.hash


def test_samples_are_decoded() -> None:
    images = pictures(4)
    samples = sample(latent_memory_of(images, TileCodec()), 12)
    nearest = (samples[:, None] - images.pixels).square().flatten(2).mean(2).min(1)
    assert float(nearest.values.max()) < 1e-4
    assert len(nearest.indices.unique()) > 1


def test_recovery_is_as_exact_as_the_autoencoder() -> None:
    images = pictures(6)
    for kept in (VALUES, 40, 24):
        codec = TileCodec(kept)
        model = latent_memory_of(images, codec)
        truth = mask("block", images.shape, count=6)
        recovered = Blind(0.5, limit=3)(model.at(0.4), truth.apply(images.pixels)).estimate
        own_error = mse(model.decode(model.encode(images.pixels)), images.pixels)
        errors = mse(recovered, images.pixels)
        assert bool((errors <= own_error + 1e-4).all())
        assert bool((errors >= own_error / 4).all())


def test_an_audit_of_a_coarse_autoencoder_warns_that_low_rates_mean_little() -> None:
    images = pictures(6)
    for kept, level in ((VALUES, "ok"), (24, "warning")):
        result = audit(
            latent_memory_of(images, TileCodec(kept)), train=images, control=pictures(6, seed=1), masks="block",
            methods="blind", noise_level=0.4, gamma=0.5, samples=4,
        )  # fmt: skip
        assert {check.name: check.level for check in result.checks}["fit"] == level
        assert (result.facts["generated"]["distinct"]["approximate"] > 0) is (level == "ok")


def autoencoder(kind: str, seed: int = 0, **settings: Any) -> Any:
    """A network of diffusers with random weights: images of 16x16, latents of 4x8x8."""
    usual = {"block_out_channels": (8, 8), "latent_channels": 4, "norm_num_groups": 4}
    usual |= {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return getattr(diffusers, kind)(**usual | settings).eval()


def latent_unet() -> Any:
    return unet(in_channels=4, out_channels=4)


def write_latent(folder: Path, part: str = "vae", kind: str = "AutoencoderKL") -> Path:
    write_folder(folder, diffusers.DDIMScheduler(1000), latent_unet())
    autoencoder(kind).save_pretrained(folder / part)
    return folder


@pytest.mark.parametrize(("part", "kind"), [("vae", "AutoencoderKL"), ("vqvae", "VQModel")])
def test_a_folder_opens_as_its_parts_compute(tmp_path: Path, part: str, kind: str) -> None:
    folder = write_latent(tmp_path, part, kind)
    opened = open_denoiser(folder)
    assert (opened.shape, opened.space) == ((3, 16, 16), (4, 8, 8))
    assert not any(weights.requires_grad for weights in opened.parameters())
    x, coder = torch.rand(2, 3, 16, 16), autoencoder(kind)
    coded = coder.encode(2 * x - 1)
    latents = (coded.latent_dist.mode() if kind == "AutoencoderKL" else coded.latents) * coder.config.scaling_factor
    expected = coder.decode(opened.clean(latents, 0.3) / coder.config.scaling_factor).sample
    assert torch.allclose(2 * opened(x, 0.3) - 1, expected, atol=1e-5)
    write_index(folder, **{part: ["diffusers", kind]})
    assert open_denoiser(folder).hash == opened.hash
    assert isinstance(open_model(folder), LatentDenoiser)


def test_a_pipeline_opens_like_its_folder(tmp_path: Path) -> None:
    given = diffusers.LDMPipeline(autoencoder("VQModel"), latent_unet(), diffusers.DDIMScheduler(1000))
    given.save_pretrained(tmp_path)
    x = torch.rand(2, 3, 16, 16)
    assert torch.allclose(open_denoiser(given)(x, 0.3), open_denoiser(tmp_path)(x, 0.3), atol=1e-4)
    given.vqvae.half()
    with pytest.raises(InputError, match=r"in half precision: take them in full, with pipeline.vqvae.float\(\)"):
        open_denoiser(given)


def test_autoencoders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    other = write_index(write_latent(tmp_path / "other"), vae=["diffusers", "AutoencoderTiny"])
    autoencoder("AutoencoderKL", latent_channels=4).save_pretrained(other / "vae")
    config = other / "vae" / "config.json"
    config.write_text(config.read_text().replace("AutoencoderKL", "AutoencoderTiny"))
    with pytest.raises(InputError, match="the latents of a AutoencoderTiny; known are those of AutoencoderKL, VQModel"):
        open_denoiser(other)
    misfit = write_latent(tmp_path / "misfit")
    autoencoder("AutoencoderKL", latent_channels=3).save_pretrained(misfit / "vae")
    with pytest.raises(InputError, match="its autoencoder has no latents of 4x8x8"):
        open_denoiser(misfit)
    pickled = write_latent(tmp_path / "pickled")
    (pickled / "vae" / "diffusion_pytorch_model.safetensors").rename(pickled / "vae" / "diffusion_pytorch_model.bin")
    with pytest.raises(InputError, match=r"only a pickle \(diffusion_pytorch_model.bin\), which could run code"):
        open_denoiser(pickled)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scaling_factor": "large"}, "its autoencoder has scaling_factor = 'large', which is no number"),
        ({"scaling_factor": [1]}, r"has scaling_factor = \[1\], which is no number"),
        ({"scaling_factor": 0}, "has scaling_factor = 0, which is no number from 1e-09"),
        ({"shift_factor": "x"}, "has shift_factor = 'x', which is no number from -1e"),
        ({"shift_factor": [0.1]}, r"has shift_factor = \[0.1\]"),
        ({"latents_mean": [0.0] * 4, "latents_std": [1.0] * 4}, r"scales each channel .*\(latents_mean, latents_std\)"),
        ({"latents_std": [2.0] * 4}, r"scales each channel of its latents \(latents_std\), which no pipeline"),
    ],
)
def test_scalings_that_are_none_known_here_are_refused(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    config = write_latent(tmp_path) / "vae" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    with pytest.raises(InputError, match=words):
        open_denoiser(tmp_path)


def test_a_shift_may_be_negative_and_null_is_none(tmp_path: Path) -> None:
    config = write_latent(tmp_path) / "vae" / "config.json"
    for shift, factor in ((-0.5, 2), (None, None)):
        own = {"shift_factor": shift, "scaling_factor": factor, "latents_mean": None}
        config.write_text(json.dumps(json.loads(config.read_text()) | own))
        opened = open_denoiser(tmp_path)
        assert isinstance(opened, LatentDenoiser)
        assert (opened.shift, opened.factor) == (shift or 0.0, factor or 1.0)


def test_it_cannot_restore_pixels_as_a_prior() -> None:
    images = pictures(6)
    model = latent_memory_of(images, TileCodec())
    with pytest.raises(InputError, match="A prior restores pixels, and this model denoises latents"):
        DDNM(model)
    with pytest.raises(InputError, match="ddnm-model is for diffusion models of pixels, and this model is none"):
        audit(model, train=images, methods="ddnm-model")
