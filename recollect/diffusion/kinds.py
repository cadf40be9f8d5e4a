"""Which diffusion models in diffusers' layout are denoisers of images, and with which coefficients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.diffusion.library import diffusers
from recollect.diffusion.preconditioning import EDM, Preconditioning, RectifiedFlow, VariancePreserving
from recollect.errors import first_line, is_whole

Config = Mapping[str, Any]
VARIANCE_PRESERVING = (  # whose betas mean the same
    "DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler",
    "DEISMultistepScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler",
)  # fmt: skip
FLOWS = ("FlowMatchEulerDiscreteScheduler", "FlowMatchHeunDiscreteScheduler")
EDMS = ("EDMEulerScheduler", "EDMDPMSolverMultistepScheduler")
LIBRARY, NETWORK = "diffusers", "unet"  # of a pipeline: whose classes open, and which part
TEXT_PARTS = ("text_encoder", "text_encoder_2", "tokenizer")
LATENT_PARTS = ("vae", "vqvae", "vqgan", "movq")


class Unusable(Exception):
    """Why a model that may be whole is no denoiser of images, as the end of a sentence."""


def check_pipeline(index: Config) -> None:
    """Refuse a pipeline whose network does not denoise images alone, by the parts that its index names."""
    parts = {name: classes for name, classes in index.items() if _is_used(classes) and not name.startswith("_")}
    if parts.keys() & set(TEXT_PARTS):
        raise Unusable("it makes images from text, and no prompt belongs to a damaged image")
    if parts.keys() & set(LATENT_PARTS):
        raise Unusable(
            "it denoises the latents of an autoencoder, and an erased pixel changes many latents: no mask of latents "
            "stands for a mask of pixels. To audit that autoencoder, give its own folder (vae)"
        )
    if parts and NETWORK not in parts:
        raise Unusable(f"it is made of {', '.join(parts)}, and its network is no UNet2DModel (unet)")
    for name in (NETWORK, "scheduler"):
        library, kind = parts.get(name, (LIBRARY, ""))
        if library != LIBRARY:
            raise Unusable(
                f"its {name} is code of its own ({library}.{kind}), and no code from a model's folder is run"
            )


def _is_used(classes: Any) -> bool:
    """Whether a pipeline's index names a part's library and class; parts that are left out have neither."""
    return isinstance(classes, list) and len(classes) == 2 and all(classes)


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
    classes, kind = config.get("num_class_embeds"), config.get("class_embed_type")
    if kind == "identity":
        raise Unusable("its network is conditioned on a vector for each image, which no option here gives")
    if label is None:
        if classes or kind:
            raise Unusable(f"its network is class-conditional: give a class with label (--label), {_range(classes)}")
        return
    if not classes and not kind:
        raise Unusable(f"its network knows no classes: leave label={label!r} out")
    if classes and not 0 <= label < classes:
        raise Unusable(f"label is a class from 0 to {classes - 1}, got {label!r}")


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
    kind = str(scheduler.get("_class_name"))
    for kinds, make in FAMILIES:
        if kind in kinds:
            return make(scheduler, network)
    known = ", ".join((*VARIANCE_PRESERVING, *FLOWS, *EDMS))
    raise Unusable(f"its noise schedule is a {kind}, which has no alphas_cumprod to read; known are {known}")


def _variance_preserving(scheduler: Config, network: Config) -> VariancePreserving:
    prediction, library = scheduler.get("prediction_type", "epsilon"), diffusers()
    try:
        alphas_cumprod = library.DDPMScheduler.from_config(dict(scheduler)).alphas_cumprod.double().tolist()
    except Exception as error:  # settings of any kind are refused in as many ways
        raise Unusable(f"its noise schedule cannot be read ({first_line(error)})") from None
    whole_steps = network.get("time_embedding_type", "positional") == "learned"
    return VariancePreserving(tuple(alphas_cumprod), prediction, whole_steps)


def _rectified_flow(scheduler: Config, _network: Config) -> RectifiedFlow:
    if scheduler.get("invert_sigmas"):
        raise Unusable("its flow runs from noise at time 0 to the image (invert_sigmas), which is not known here")
    return RectifiedFlow(int(scheduler.get("num_train_timesteps", 1000)))


def _edm(scheduler: Config, _network: Config) -> EDM:
    signs = {"epsilon": 1.0, "v_prediction": -1.0}
    prediction = scheduler.get("prediction_type", "epsilon")
    if prediction not in signs:
        raise Unusable(f"it predicts {prediction!r}; known are {', '.join(signs)}")
    edges = {"lowest": scheduler.get("sigma_min", 0.002), "highest": scheduler.get("sigma_max", 80.0)}
    return EDM(float(scheduler.get("sigma_data", 0.5)), signs[prediction], **edges)


def _range(classes: int | None) -> str:
    return f"0 to {classes - 1}" if classes else "its number"


FAMILIES: tuple[tuple[tuple[str, ...], Callable[[Config, Config], Preconditioning]], ...] = (
    (VARIANCE_PRESERVING, _variance_preserving),
    (FLOWS, _rectified_flow),
    (EDMS, _edm),
)
