"""A diffusion model of an autoencoder's latents, as a denoiser of the images behind them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recollect.diffusion.config_values import MOST, Config, Unusable, read_number
from recollect.diffusion.denoiser import Denoiser
from recollect.files.limits import PRIOR_SIDE


class LatentDenoiser(Denoiser):
    """Encode an image, denoise its latents, and decode them: a map of images like any other denoiser.

    Attacks handle the mask in pixels, outside of this map. The noise level is that of the latents. The autoencoder's
    own error is part of every result.
    """

    latent = True

    def __init__(self, own: Denoiser, autoencoder: Any) -> None:
        super().__init__(own.network, own.preconditioning, own.shape, own.name, own.card, own.predict)
        self.autoencoder = autoencoder
        self.factor, self.shift = read_scaling(autoencoder.config)
        self.shape = self._decoded_shape()  # of images; `space` is still that of latents

    def encode(self, images: Tensor) -> Tensor:
        coded = self.autoencoder.encode(2 * images - 1)
        latents = coded.latent_dist.mode() if hasattr(coded, "latent_dist") else coded.latents
        return (latents - self.shift) * self.factor

    def decode(self, x: Tensor) -> Tensor:
        images: Tensor = self.autoencoder.decode(x / self.factor + self.shift).sample
        return (images + 1) / 2

    def _weights(self) -> dict[str, Tensor]:
        own = {f"autoencoder.{name}": weights for name, weights in self.autoencoder.state_dict().items()}
        return {**super()._weights(), **own}

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "autoencoder": sorted((k, repr(v)) for k, v in self.autoencoder.config.items())}

    @torch.no_grad()
    def _decoded_shape(self) -> tuple[int, int, int]:
        """Find the size of the images by decoding; refuse an autoencoder that makes other latents."""
        side = max(self.space[1:]) * 2 ** (len(self.autoencoder.config["block_out_channels"]) - 1)
        PRIOR_SIDE.check(side, f"The latent model {self.name} makes images of {side:,} pixels a side.")
        device = next(self.autoencoder.parameters()).device
        try:
            images = self.decode(torch.zeros(1, *self.space, device=device))
            fits = self.encode(images).shape[1:] == self.space
        except RuntimeError:  # of a convolution that takes other channels
            fits = False
        if not fits:
            raise Unusable(
                f"its autoencoder has no latents of {'x'.join(map(str, self.space))}, which its unet denoises"
            )
        channels, height, width = images.shape[1:]
        return channels, height, width


def read_scaling(config: Config) -> tuple[float, float]:
    """Read the factor by which latents are scaled, and what is subtracted from them before."""
    own = [name for name in ("latents_mean", "latents_std") if config.get(name) is not None]
    if own:
        raise Unusable(
            f"its autoencoder scales each channel of its latents ({', '.join(own)}), which no pipeline of diffusers "
            "does for a UNet2DModel; set these to null if the network was trained without them"
        )
    factor = read_number("autoencoder", config, "scaling_factor", 1.0)
    return factor, read_number("autoencoder", config, "shift_factor", 0.0, -MOST)
