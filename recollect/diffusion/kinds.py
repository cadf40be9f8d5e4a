"""Which diffusion models in diffusers' layout are denoisers of images, and with which coefficients."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from recollect.diffusion.config_values import Config, Unusable, read_count, read_number, read_prediction
from recollect.diffusion.library import diffusers
from recollect.diffusion.preconditioning import (
    EDM,
    HIGHEST,
    LOWEST,
    PREDICTIONS,
    Preconditioning,
    RectifiedFlow,
    VariancePreserving,
)
from recollect.errors import first_line, is_whole
from recollect.model_folders import quiet

VARIANCE_PRESERVING = (  # whose betas mean the same
    "DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler",
    "DEISMultistepScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler",
    "DDPMParallelScheduler", "DDIMParallelScheduler", "DPMSolverSinglestepScheduler", "LMSDiscreteScheduler",
    "KDPM2DiscreteScheduler", "KDPM2AncestralDiscreteScheduler",
)  # fmt: skip
FLOWS = ("FlowMatchEulerDiscreteScheduler", "FlowMatchHeunDiscreteScheduler")
EDMS = ("EDMEulerScheduler", "EDMDPMSolverMultistepScheduler")
NOISE_SETTINGS = (  # that decide how much noise a time step has; others decide which steps a sampler takes
    "num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr",
)  # fmt: skip
LIBRARY, NETWORK = "diffusers", "unet"  # of a pipeline: whose classes open, and which part
SCHEDULE = "noise schedule"  # the part in sentences
TEXT_PARTS = ("text_encoder", "text_encoder_2", "tokenizer")
LATENT_PARTS = ("vae", "vqvae", "vqgan", "movq")
AUTOENCODERS = ("AutoencoderKL", "VQModel")  # whose latents are denoised


def check_pipeline(index: Config) -> None:
    """Refuse a pipeline whose network does not denoise images alone, by the parts that its index names."""
    parts = used_parts(index)
    check_parts(parts)
    for name in (NETWORK, "scheduler", *LATENT_PARTS):
        library, kind = parts.get(name, (LIBRARY, ""))
        if library != LIBRARY:
            raise Unusable(
                f"its {name} is code of its own ({library}.{kind}), and no code from a model's folder is run"
            )


def check_parts(parts: Collection[str]) -> None:
    """Refuse a pipeline made of these parts unless its network denoises images alone."""
    if set(parts) & set(TEXT_PARTS):
        raise Unusable("it makes images from text, and no prompt belongs to a damaged image")
    if parts and NETWORK not in parts:
        raise Unusable(f"it is made of {', '.join(parts)}, and its network is no UNet2DModel (unet)")


def check_autoencoder(kind: Any) -> None:
    """Refuse a latent model whose autoencoder is another than those known here."""
    if kind not in AUTOENCODERS:
        raise Unusable(f"it denoises the latents of a {kind}; known are those of {', '.join(AUTOENCODERS)}")


def used_parts(index: Config) -> dict[str, Any]:
    """List a pipeline's parts with library and class; parts that are left out have neither."""
    return {name: classes for name, classes in index.items() if _is_used(classes) and not name.startswith("_")}


def _is_used(classes: Any) -> bool:
    return isinstance(classes, list | tuple) and len(classes) == 2 and all(classes)


def check_network(config: Config, label: int | None) -> None:
    """Refuse a network that does not denoise images, or that needs a class and is not told one."""
    kind = config.get("_class_name")
    if kind == "UNet2DConditionModel":
        raise Unusable("its network is a UNet2DConditionModel, which needs a prompt or another condition")
    if kind != "UNet2DModel":
        raise Unusable(f"its network is a {kind}, not a UNet2DModel")
    if config.get("time_embedding_type", "positional") not in ("positional", "learned"):
        raise Unusable("its network is told the noise level by random Fourier features, which no schedule here sets")
    check_label(config, label)


def check_label(config: Config, label: int | None) -> None:
    """Refuse a class-conditional network without its class, and a class that the network does not know."""
    classes, kind = _classes(config), config.get("class_embed_type")
    if kind == "identity":
        raise Unusable("its network is conditioned on a vector for each image, which no option here gives")
    if label is None:
        if classes or kind:
            numbers = f"0 to {classes - 1}" if classes else "its number"
            raise Unusable(f"its network is class-conditional: give a class with label (--label), {numbers}")
        return
    if not classes and not kind:
        raise Unusable(f"its network knows no classes: leave label={label!r} out")
    if classes and not 0 <= label < classes:
        raise Unusable(f"label is a class from 0 to {classes - 1}, got {label!r}")


def _classes(config: Config) -> int | None:
    """Read how many classes a network knows, if it says so."""
    if config.get("num_class_embeds") is None:
        return None
    return read_count("network", config, "num_class_embeds", 1)


def image_shape(config: Config) -> tuple[int, int, int]:
    """Read channels, height and width of the images that a network was trained on."""
    size, channels = config.get("sample_size"), config.get("in_channels")
    if size is None or channels is None:
        raise Unusable("it does not say the size of its images (sample_size, in_channels)")
    if config.get("out_channels") != channels:
        raise Unusable(f"its network takes {channels} channels and returns {config.get('out_channels')}")
    sides = [size, size] if is_whole(size) else size
    if not isinstance(sides, list | tuple) or len(sides) != 2 or not all(is_whole(n, 1) for n in (channels, *sides)):
        raise Unusable(f"the size of its images is no size: {channels!r} channels of {size!r}")
    return int(channels), int(sides[0]), int(sides[1])


def preconditioning_of(scheduler: Config, network: Config) -> Preconditioning:
    """Choose the coefficients by the kind of the noise schedule."""
    _time_steps(scheduler)  # of every kind: what diffusers says of other values is no sentence
    kind = str(scheduler.get("_class_name"))
    for kinds, make in FAMILIES:
        if kind in kinds:
            return make(scheduler, network)
    known = ", ".join((*VARIANCE_PRESERVING, *FLOWS, *EDMS))
    raise Unusable(f"its noise schedule is a {kind}, whose noise levels are not known here; known are {known}")


def _variance_preserving(scheduler: Config, network: Config) -> Preconditioning:
    prediction = scheduler.get("prediction_type", "epsilon")
    if scheduler.get("use_flow_sigmas"):
        if prediction != "flow_prediction":
            raise Unusable(f"its noise levels are those of a flow (use_flow_sigmas), but it predicts {prediction!r}")
        return _rectified_flow(scheduler, network)
    prediction = read_prediction(scheduler, PREDICTIONS)
    schedule = VariancePreserving(_alphas_cumprod(scheduler), prediction, _knows_whole_steps(network))
    if _is_told_logarithms(scheduler):
        _check_any_time(network)
        return EDM(1.0, -1.0, *_ends(scheduler, schedule.lowest, schedule.highest))
    return schedule


def _alphas_cumprod(scheduler: Config) -> tuple[float, ...]:
    """Read the noise schedule by the class that it names, whose defaults may be its own."""
    settings = {name: scheduler[name] for name in NOISE_SETTINGS if name in scheduler}
    library = diffusers()  # that it is missing is no fault of the schedule
    try:
        kind = getattr(library, str(scheduler.get("_class_name")))
        with quiet("diffusers"):
            alphas_cumprod = kind.from_config(settings).alphas_cumprod.double().tolist()
    except Exception as error:  # diffusers refuses settings with any error
        raise Unusable(f"its noise schedule cannot be read ({first_line(error)})") from None
    if scheduler.get("rescale_betas_zero_snr"):
        alphas_cumprod[-1] = 0.0  # which some classes raise above the one before it
    return tuple(alphas_cumprod)


def _is_told_logarithms(scheduler: Config) -> bool:
    """Say whether the network is told a quarter of log(sigma) in place of a time step, as Euler's scheduler may."""
    settings = (scheduler.get("_class_name"), scheduler.get("timestep_type"), scheduler.get("prediction_type"))
    return settings == ("EulerDiscreteScheduler", "continuous", "v_prediction")


def _knows_whole_steps(network: Config) -> bool:
    return network.get("time_embedding_type", "positional") == "learned"


def _check_any_time(network: Config) -> None:
    if _knows_whole_steps(network):
        raise Unusable("its network learned whole time steps, and its noise schedule tells it the noise level itself")


def _rectified_flow(scheduler: Config, network: Config) -> RectifiedFlow:
    _check_any_time(network)
    if scheduler.get("invert_sigmas"):
        raise Unusable("its flow runs from noise at time 0 to the image (invert_sigmas), which is not known here")
    return RectifiedFlow(_time_steps(scheduler))


def _time_steps(scheduler: Config) -> int:
    return read_count(SCHEDULE, scheduler, "num_train_timesteps", 1000)


def _edm(scheduler: Config, network: Config) -> EDM:
    _check_any_time(network)
    signs = {"epsilon": 1.0, "v_prediction": -1.0}
    sign = signs[read_prediction(scheduler, signs)]
    return EDM(read_number(SCHEDULE, scheduler, "sigma_data", 0.5), sign, *_ends(scheduler, LOWEST, HIGHEST))


def _ends(scheduler: Config, lowest: float, highest: float) -> tuple[float, float]:
    """Read the lowest and the highest noise level, or take these."""
    low = read_number(SCHEDULE, scheduler, "sigma_min", lowest)
    high = read_number(SCHEDULE, scheduler, "sigma_max", highest)
    if low >= high:
        raise Unusable(f"its lowest noise level (sigma_min), {low:g}, is not below its highest (sigma_max), {high:g}")
    return low, high


FAMILIES: tuple[tuple[tuple[str, ...], Callable[[Config, Config], Preconditioning]], ...] = (
    (VARIANCE_PRESERVING, _variance_preserving),
    (FLOWS, _rectified_flow),
    (EDMS, _edm),
)
