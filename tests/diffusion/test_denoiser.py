"""D(x; sigma) is held against what diffusers' own schedulers predict."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recollect import Blind, InputError, Iterate, KnownMask, mask
from recollect.degradation import Erasure
from recollect.diffusion import Denoiser, DenoiserAt, open_denoiser
from recollect.diffusion.library import diffusers as library
from recollect.diffusion.networks import network_for
from recollect.diffusion.preconditioning import EDM
from recollect.engine.runtime import without_acceleration
from recollect.methods import DDNM, Method, Refined
from tests.diffusion.folders import SHAPE, unet, write_folder
from tests.diffusion.making import posterior_mean
from tests.planted import Memorizer

diffusers = library()


def images(count: int = 2, seed: int = 0) -> Tensor:
    return torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(seed))


def normal(count: int = 2, seed: int = 1) -> Tensor:
    return torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("t", [0, 250, 999])
def test_at_a_time_step_it_is_what_ddim_predicts(tmp_path: Path, prediction: str, t: int) -> None:
    scheduler = diffusers.DDIMScheduler(1000, prediction_type=prediction, clip_sample=False)
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    x0, noise = 2 * images() - 1, normal()
    shown = scheduler.add_noise(x0, noise, torch.tensor([t]))
    scheduler.set_timesteps(1000)
    expected = scheduler.step(denoiser.network(shown, t).sample, t, shown).pred_original_sample
    sigma = denoiser.sigmas[t]
    noisy = x0 + sigma * noise
    assert torch.allclose(denoiser.clean(noisy, sigma), expected, atol=2e-4 * float(expected.abs().max()))
    as_pixels = denoiser((noisy + 1) / 2, sigma)
    assert torch.allclose(2 * as_pixels - 1, expected, atol=1e-3 * float(expected.abs().max()))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of diffusers
@pytest.mark.parametrize("number", [3, 15, 26])
def test_told_logarithms_it_is_what_eulers_scheduler_predicts(tmp_path: Path, number: int) -> None:
    """Stable Video Diffusion is such a model: its network is told log(sigma) / 4."""
    scheduler = diffusers.EulerDiscreteScheduler(
        1000, prediction_type="v_prediction", timestep_type="continuous", use_karras_sigmas=True, sigma_min=0.002,
        sigma_max=700.0,
    )  # fmt: skip
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    assert (denoiser.preconditioning.lowest, denoiser.preconditioning.highest) == (0.002, 700.0)
    scheduler.set_timesteps(30)
    t, level = scheduler.timesteps[number], float(scheduler.sigmas[number])
    x = 2 * images() - 1 + level * normal()
    told = denoiser.network(scheduler.scale_model_input(x, t), t).sample
    expected = scheduler.step(told, t, x).pred_original_sample
    assert torch.allclose(denoiser.clean(x, level), expected, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of diffusers
@pytest.mark.parametrize("kind", ["DPMSolverMultistepScheduler", "UniPCMultistepScheduler"])
def test_of_a_flow_it_is_what_the_solver_predicts(tmp_path: Path, kind: str) -> None:
    scheduler = getattr(diffusers, kind)(1000, prediction_type="flow_prediction", use_flow_sigmas=True)
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    scheduler.set_timesteps(10)
    s = float(scheduler.sigmas[4])
    x0, noise = 2 * images() - 1, normal()
    shown = (1 - s) * x0 + s * noise
    scheduler.set_begin_index(3)
    scheduler.step(noise, scheduler.timesteps[3], shown)  # brings the solver to its step 4
    told = denoiser.network(shown, torch.tensor(1000 * s)).sample  # the solver rounds it to a whole number
    expected = scheduler.convert_model_output(told, sample=shown)
    clean = denoiser.clean(shown / (1 - s), s / (1 - s))
    assert torch.allclose(clean, expected, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of diffusers
@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.7, 3.0])
def test_between_time_steps_it_is_what_eulers_scheduler_predicts(tmp_path: Path, sigma: float) -> None:
    """Euler's scheduler with Karras' noise levels interpolates in the logarithm of the noise level too."""
    scheduler = diffusers.EulerDiscreteScheduler(1000, prediction_type="epsilon", use_karras_sigmas=True)
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    scheduler.set_timesteps(30)
    number = int((scheduler.sigmas - sigma).abs().argmin())
    t, level = scheduler.timesteps[number], float(scheduler.sigmas[number])
    assert float(t) != round(float(t))
    x = 2 * images() - 1 + level * normal()
    predicted = denoiser.network(scheduler.scale_model_input(x, t), t).sample
    expected = scheduler.step(predicted, t, x).pred_original_sample
    assert denoiser.preconditioning.at(level).time == pytest.approx(float(t), abs=0.02)
    assert torch.allclose(denoiser.clean(x, level), expected, atol=1e-4)


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction"])
def test_an_edm_schedule_is_read_as_diffusers_reads_it(tmp_path: Path, prediction: str) -> None:
    scheduler = diffusers.EDMEulerScheduler(sigma_data=0.4, prediction_type=prediction)
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    scheduler.set_timesteps(20)
    t, sigma = scheduler.timesteps[8], float(scheduler.sigmas[8])
    x = 2 * images() - 1 + sigma * normal()
    predicted = denoiser.network(scheduler.scale_model_input(x, t), t).sample
    expected = scheduler.step(predicted, t, x).pred_original_sample
    assert torch.allclose(denoiser.clean(x, sigma), expected, atol=1e-4 * max(1, sigma))
    assert (denoiser.preconditioning.lowest, denoiser.preconditioning.highest) == (0.002, 80)


def test_a_rectified_flow_ends_where_diffusers_steps_to(tmp_path: Path) -> None:
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(1000, shift=3.0)
    denoiser = open_denoiser(write_folder(tmp_path, scheduler))
    scheduler.set_timesteps(10)
    t, s = scheduler.timesteps[6:7], float(scheduler.sigmas[6])
    x0, noise = 2 * images() - 1, normal()
    shown = scheduler.scale_noise(x0, t, noise)
    velocity = denoiser.network(shown, t).sample
    expected = shown - s * velocity  # one Euler step from time s to time 0
    sigma = s / (1 - s)
    assert torch.allclose(denoiser.clean(x0 + sigma * noise, sigma), expected, atol=1e-4)


def test_a_network_of_whole_time_steps_takes_the_nearest_one(tmp_path: Path) -> None:
    network = unet(time_embedding_type="learned", num_train_timesteps=1000)
    denoiser = open_denoiser(write_folder(tmp_path, diffusers.DDPMScheduler(1000), network))
    at = denoiser.preconditioning.at
    between = math.sqrt(denoiser.sigmas[300] * denoiser.sigmas[301])
    assert at(between * 1.0001) == at(denoiser.sigmas[301])
    assert at(between * 0.9999) == at(denoiser.sigmas[300])
    x = 2 * images() - 1
    assert torch.equal(denoiser.clean(x, between * 1.0001), denoiser.clean(x, denoiser.sigmas[301]))


def test_a_class_conditional_network_is_told_its_class(tmp_path: Path) -> None:
    scheduler, network = diffusers.DDPMScheduler(1000), unet(num_class_embeds=4)
    folder = write_folder(tmp_path, scheduler, network)
    denoiser, x = open_denoiser(folder, label=3), 2 * images() - 1
    scale = denoiser.preconditioning.at(denoiser.sigmas[100]).scale
    noise = denoiser.network(scale * x, 100, class_labels=torch.tensor([3, 3])).sample
    sigma = denoiser.sigmas[100]
    assert torch.allclose(denoiser.clean(x, sigma), x - sigma * noise, atol=1e-5)
    assert not torch.equal(denoiser.clean(x, sigma), open_denoiser(folder, label=2).clean(x, sigma))


def test_it_finds_the_noise_for_ddnm_in_every_family(tmp_path: Path) -> None:
    """The exact denoiser of one image knows the noise whatever is drawn."""
    stored = 2 * images(1) - 1
    denoiser = Denoiser.of(posterior_mean(stored), SHAPE)
    noise = normal(1)
    for t in (300, 700):
        a = float(denoiser.alphas_cumprod[t])
        assert torch.allclose(denoiser.noise(math.sqrt(a) * stored + math.sqrt(1 - a) * noise, t), noise, atol=1e-3)
    truth = mask("half", SHAPE)
    recovery = DDNM(denoiser, steps=20)(None, truth.apply((stored + 1) / 2), truth)
    assert torch.allclose(recovery.estimate, (stored + 1) / 2, atol=1e-3)


def test_at_a_noise_level_it_is_an_autoencoder_that_methods_attack() -> None:
    stored = 2 * images(4) - 1
    autoencoder = Denoiser.of(posterior_mean(stored), SHAPE).at(0.3)
    truth, x = mask("block", SHAPE), images(4)
    y = truth.apply(x)
    for recovery in (Blind(gamma=0.5)(autoencoder, y), KnownMask()(autoencoder, y, truth), Iterate()(autoencoder, y)):
        assert float((recovery.estimate - x).square().mean()) < 1e-4
    assert isinstance(autoencoder, nn.Module)
    assert torch.equal(autoencoder(x), autoencoder.denoiser(x, 0.3))


def test_each_noise_level_is_a_model_of_its_own() -> None:
    denoiser = Denoiser.of(posterior_mean(images(2)), SHAPE)
    states = [denoiser.at(sigma).state_dict()["_extra_state"] for sigma in (0.1, 0.1, 0.2)]
    assert states[0] == states[1] != states[2]


@pytest.mark.parametrize("sigma", [0.0, 0.001, 90.0, math.nan, math.inf, "low", None, True])
def test_a_noise_level_that_the_model_does_not_know_is_refused(sigma: Any) -> None:
    denoiser = Denoiser.of(posterior_mean(images(2)), SHAPE, "mine")
    with pytest.raises(InputError, match=r"a number from 0.002 to 80, the levels of mine; got"):
        denoiser.at(sigma)


def test_images_of_another_size_are_refused() -> None:
    denoiser = Denoiser.of(posterior_mean(images(2)), SHAPE, "mine")
    for shape in ((1, 8, 8), (3, 16, 16)):
        with pytest.raises(InputError, match=r"mine takes images of 3x8x8; these are"):
            denoiser.at(0.2)(torch.rand(1, *shape))


class Bent(nn.Module):
    """A network with one weight."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        return x * self.weight.to(x.dtype) + 0 * sigma


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (3, "is a function f"),
        (Memorizer, "is a function f"),
        (lambda x: x, "cannot be called as f"),
        (lambda x, sigma: None, "returned NoneType for images of 2x3x8x8"),
        (lambda x, sigma: x[:, :1], "returned 2x1x8x8 for images of 2x3x8x8"),
        (lambda x, sigma: x / (0 * sigma), "returned NaN or infinite values"),
        (Bent(torch.ones(1).half()), "are torch.float16; take them in full precision"),
        (Bent(torch.full((1,), math.nan)), "are not finite"),
    ],
)
def test_what_is_no_denoiser_is_refused_in_a_sentence(f: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Denoiser.of(f, SHAPE)


@pytest.mark.parametrize(
    "shape",
    [None, 3, "3x8", "", (3, 8), (3, 8, 8, 8), (0, 8, 8), (-3, 8, 8), (3.0, 8, 8), (True, 8, 8), ("3", "8", "8")],
)
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with pytest.raises(
        InputError, match=r"shape is channels, height and width of the images, as \(3, 32, 32\) for example; got"
    ):
        Denoiser.of(lambda x, sigma: x, shape)


def test_a_shape_may_be_any_three_whole_numbers() -> None:
    for shape in ([3, 8, 4], torch.Size((3, 8, 4)), (np.int64(3), 8, 4)):
        assert Denoiser.of(lambda x, sigma: x, shape).shape == (3, 8, 4)  # type: ignore[arg-type]


def test_it_names_its_weights() -> None:
    first, same, other = (Denoiser.of(Bent(torch.full((1,), v)), SHAPE, "p") for v in (1.0, 1.0, 0.5))
    assert str(first) == str(same) == f"p, {first.hash}"
    assert str(first) != str(other)


def test_an_annealed_denoiser_falls_along_admm_and_is_fixed_elsewhere() -> None:
    levels: list[float] = []

    def f(x: Tensor, sigma: Tensor) -> Tensor:
        levels.append(float(sigma))
        return x / (1 + sigma) + sigma

    denoiser = Denoiser.of(f, SHAPE)
    annealed, fixed = denoiser.at(0.2, annealed=True), denoiser.at(0.2)
    assert torch.equal(annealed(images()), fixed(images()))
    keep = mask("half", SHAPE, count=2)
    found = KnownMask(0.5, steps=4)(annealed, keep.apply(images()), keep)
    with without_acceleration():
        plain = KnownMask(0.5, steps=4)(annealed, keep.apply(images()), keep)
    assert levels[-4:] == pytest.approx([0.5, 0.5 * 0.1 ** (1 / 3), 0.5 * 0.1 ** (2 / 3), 0.05])
    assert torch.allclose(found.estimate, plain.estimate, atol=1e-6)
    assert not torch.equal(found.estimate, KnownMask(0.5, steps=4)(fixed, keep.apply(images()), keep).estimate)
    assert annealed.get_extra_state() != fixed.get_extra_state()


def test_annealing_stays_within_the_noise_levels_of_a_model(tmp_path: Path) -> None:
    scheduler = diffusers.DDIMScheduler(1000, beta_start=0.01, beta_end=0.02)
    annealed = open_denoiser(write_folder(tmp_path, scheduler)).at(0.2, annealed=True)
    lowest = annealed.denoiser.preconditioning.lowest
    assert lowest > 0.05
    expected = annealed.denoiser.coefficients([0.5, lowest, 0.2])
    assert torch.allclose(annealed.admm_schedule(3)[[0, 2, 3]], expected)  # type: ignore[operator]


@pytest.mark.parametrize("embedding", ["positional", "learned"])
def test_a_row_of_the_schedule_is_its_noise_level(tmp_path: Path, embedding: str) -> None:
    """Networks that know whole time steps alone are told a whole one."""
    network = unet(time_embedding_type=embedding, num_train_timesteps=1000)
    denoiser = open_denoiser(write_folder(tmp_path, diffusers.DDPMScheduler(1000), network))
    row = denoiser.coefficients([0.3])[0].to(images())
    annealed = denoiser.at(0.2, annealed=True)
    assert torch.equal(annealed(images(), row), denoiser(images(), 0.3))
    assert not torch.equal(annealed(images(), row), annealed(images()))


each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def annealed_residual(device: str) -> DenoiserAt:
    """A network of fixed random weights, in float64: methods may then agree to rounding on every device."""
    network = network_for("residual", SHAPE, 0, width=32, blocks=1).double()
    return Denoiser(network, EDM(), SHAPE, "random").to(device).at(0.2, annealed=True)


@each_device
@pytest.mark.parametrize("method", [Blind(limit=2), KnownMask(), Refined(limit=1)], ids=["blind", "known", "refined"])
def test_annealed_answers_depend_on_neither_device_nor_batch_mates(method: Method, device: str) -> None:
    truth, x = mask("half", SHAPE, count=5), images(5).double()
    y = truth.apply(x)
    with without_acceleration():
        expected = method(annealed_residual("cpu"), y, truth).estimate
    assert not torch.allclose(expected, x, atol=1e-2)  # there is something to compare
    f = annealed_residual(device)
    for chunk in (None, 2):
        assert torch.allclose(method(f, y, truth, chunk=chunk).estimate, expected, atol=1e-8)
    alone = method(f, y[3:5], Erasure(truth.expand(y).keep[3:5]))
    assert torch.allclose(alone.estimate, expected[3:5], atol=1e-8)
